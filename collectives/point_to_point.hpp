#pragma once

// The host's side of point-to-point messages: makes batches for the kernel (pairwise.hpp), and hands
// out what was received.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "collectives/membership.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/wire/mail.hpp"
#include "treering/treering.hpp"

namespace treering {

/// Throws Error{invalid_argument} for a transfer of a rank of `size` that cannot be.
void check_transfer(const Transfer&, int rank, int size);

/// Operations posted together, and to whom what they receive is told. Used again and again.
class Parcel {
 public:
  /// Room for `capacity` operations. Throws Error{out_of_memory}.
  Parcel(Device& device, std::size_t capacity);
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  ~Parcel();

  std::size_t capacity() const { return capacity_; }
  Batch* batch() const { return batch_; }
  Event& event() const { return *event_; }

  /// Throws Error{unsupported} for an algorithm that is not there.
  void fill(const Membership& seat, std::span<const Transfer> transfers,
            std::optional<Algorithm> forced);
  /// Once the batch is done, tells what was received and returns true.
  bool deliver();

 private:
  Device& device_;
  std::size_t capacity_;
  Batch* batch_;  ///< control memory, the operations behind it
  std::unique_ptr<Event> event_;
  std::vector<Message*> received_;
};

/// One rank's parcels. Thread-safe.
class PostRoom {
 public:
  explicit PostRoom(Device& device);
  PostRoom(const PostRoom&) = delete;
  PostRoom& operator=(const PostRoom&) = delete;
  ~PostRoom();

  /// An empty parcel with room for `transfers`. Throws Error{out_of_memory}.
  std::shared_ptr<Parcel> take(std::size_t transfers);
  /// It has been launched on a queue, and its event been recorded there: it is kept until then.
  void sent(std::shared_ptr<Parcel> parcel);
  /// Waits for all that were sent.
  void synchronize();

 private:
  struct Pool;
  Device& device_;
  std::shared_ptr<Pool> pool_;  ///< parcels that nobody holds
  std::mutex mutex_;
  std::vector<std::shared_ptr<Parcel>> sent_;
};

}  // namespace treering
