#pragma once

/// Treering: collective communication among ranks, on GPUs or CPUs.
///
///     auto comm = treering::Communicator::create(id, world_size, rank);
///     comm.all_reduce(in, out, count, treering::DataType::f32, treering::ReduceOp::sum);

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "treering/error.hpp"
#include "treering/types.hpp"

namespace treering {

/// What the ranks of one communicator share at start. Made once, by anyone; passed on by the user,
/// as 128 bytes or as text. Any process of this machine may make it, and need not stay alive.
class UniqueId {
 public:
  static constexpr std::size_t size = 128;

  /// A new id, different from every other.
  static UniqueId create();
  /// From text() or bytes(). Throws Error{invalid_argument} if it was cut short or changed.
  static UniqueId parse(std::string_view text);
  static UniqueId from_bytes(const void* bytes128);

  std::string text() const;
  const std::array<std::byte, size>& bytes() const noexcept { return bytes_; }

 private:
  UniqueId() = default;
  std::array<std::byte, size> bytes_{};
};

class Communicator;
class Membership;

/// Work that runs in order while the caller goes on: a CUDA stream, or a thread of Treering's on
/// the host. Destruction waits for the work. Thread-safe.
class Stream {
 public:
  Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits until everything is done; throws the Error of a call on this stream that failed, if any
  /// did.
  void synchronize();
  /// True if nothing is left to do.
  bool idle() const;
  /// The cudaStream_t; null on the host.
  void* native() const;

 private:
  friend class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

/// Collects the calls that this thread makes, on streams, and launches them together: for one
/// thread that drives several ranks. Ranks that share a GPU then run in one launch, the only form
/// in which CUDA promises that they run at the same time. One call of each rank; not nested.
class LaunchGroup {
 public:
  /// Calls of this thread are collected from now on. Throws Error{invalid_argument} if they are
  /// already.
  LaunchGroup();
  LaunchGroup(const LaunchGroup&) = delete;
  LaunchGroup& operator=(const LaunchGroup&) = delete;
  /// Calls that were not launched are dropped, as if they had not been made.
  ~LaunchGroup();

  /// Launches what was collected, and ends the collecting. Throws Error{invalid_argument} if it has
  /// ended already, or this is not the thread that made the group.
  void launch();

 private:
  friend class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

/// Memory that ranks access directly, without staging: device memory on a GPU, shared memory on the
/// host. Local.
class Buffer {
 public:
  /// Zeroed, aligned to 256 bytes. Throws Error{out_of_memory}.
  explicit Buffer(std::size_t bytes);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// How a communicator is made. Everything here must be the same on all ranks.
struct Options {
  std::optional<Algorithm> algorithm = {};  ///< used wherever the collective has it
  /// Reductions depend on nothing but the inputs and the order of the ranks: see docs/numerics.md.
  bool deterministic = false;
};

/// How one call is made.
struct CallOptions {
  Stream* stream = nullptr;  ///< null: the call returns when its result is there
  /// Must be the same on all ranks; Error{unsupported} if there is none.
  std::optional<Algorithm> algorithm = {};
  /// For premul_sum: what this rank's input is multiplied by; need not be the same on all ranks.
  double scale = 1;
};

/// Uneven parts of a buffer, one for each rank, in elements.
struct Parts {
  std::span<const std::size_t> counts;
  /// Where each part begins. Empty: they follow one another.
  std::span<const std::size_t> displacements = {};
};

/// What the latest call did, for people and benchmarks.
struct CallReport {
  Algorithm algorithm;
  bool direct;  ///< every rank's buffers were accessed directly; false: staged, or not yet complete
  int blocks;
};

/// A group of ranks that call collectives together, all in the same order. One object per rank. Any
/// thread may call; calls of one rank take effect in the order in which they are made. Move-only.
///
/// Buffers hold elements of `type` and are aligned to it. In place: output == input, but where a buffer has
/// a part for each rank: there the other is this rank's part of it (reduce_scatter and scatter: output ==
/// input + rank × count; all_gather and gather: input == output + rank × count). Buffers that overlap in
/// another way are refused. Pointers may be null where nothing is read or written. Collectives without root
/// synchronise even if all counts are zero; with a root, whoever gives may return before the others have it.
/// Every method throws Error: `invalid_argument` before anything is sent, the communicator stays usable;
/// `mismatch`, `peer_lost`, `aborted` on every rank, after which it is broken; a rank that had nothing to wait for
/// in the call that failed has the error in one of its next two.
class Communicator {
 public:
  /// Joins `world_size` ranks of this machine as number `rank`. All ranks call this, each in a
  /// process or thread of its own; it returns when all have come. Throws Error{timeout} naming the
  /// ranks that are missing.
  static Communicator create(const UniqueId& id, int world_size, int rank,
                             const Options& options = {});
  /// All ranks of a communicator within this process, created together by one thread.
  static std::vector<Communicator> create_local(int world_size, const Options& options = {});

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  /// Local: waits for this rank's calls, not for other ranks.
  ~Communicator();

  int rank() const noexcept;
  int size() const noexcept;

  /// output[i] = input[i] of all ranks combined, for i < count.
  void all_reduce(const void* input, void* output, std::size_t count, DataType type, ReduceOp op,
                  const CallOptions& how = {});
  /// Input: size() × count elements; output: count, part number rank() of the combination.
  void reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                      ReduceOp op, const CallOptions& how = {});
  /// Input: count elements; output: size() × count, everyone's input in rank order.
  void all_gather(const void* input, void* output, std::size_t count, DataType type,
                  const CallOptions& how = {});
  /// Input and output: size() × count; part r of the input goes to rank r, part r of the output
  /// came from there.
  void all_to_all(const void* input, void* output, std::size_t count, DataType type,
                  const CallOptions& how = {});
  /// The same with uneven parts. `parts` are the input's, the same on all ranks; output: this rank's count.
  void reduce_scatter_v(const void* input, void* output, const Parts& parts, DataType type,
                        ReduceOp op, const CallOptions& how = {});
  /// `parts` are the output's, the same on all ranks; input: this rank's count.
  void all_gather_v(const void* input, void* output, const Parts& parts, DataType type,
                    const CallOptions& how = {});
  /// `sent` are the parts of the input, `received` those of the output. What one rank sends another must be
  /// what that one expects, else Error{mismatch} on every rank. In place both must be the same.
  void all_to_all_v(const void* input, const Parts& sent, void* output, const Parts& received,
                    DataType type, const CallOptions& how = {});
  /// output[i] = the root's input[i], on every rank. Input counts on the root only.
  void broadcast(const void* input, void* output, std::size_t count, DataType type, int root,
                 const CallOptions& how = {});
  /// On the root output[i] = input[i] of all ranks combined; the others' output counts for nothing.
  void reduce(const void* input, void* output, std::size_t count, DataType type, ReduceOp op,
              int root, const CallOptions& how = {});
  /// Input: count elements. On the root output: size() × count, everyone's input in rank order.
  void gather(const void* input, void* output, std::size_t count, DataType type, int root,
              const CallOptions& how = {});
  /// On the root input: size() × count, of which rank r gets part r. Output: count elements.
  void scatter(const void* input, void* output, std::size_t count, DataType type, int root,
               const CallOptions& how = {});
  /// Returns (or lets the stream go on) when every rank has called it.
  void barrier(const CallOptions& how = {});

  /// Makes `bytes` at `pointer` directly accessible to all ranks until the communicator is
  /// destroyed or deregister() is called. On GPUs all ranks call it, in the same order. Returns
  /// whether access will be direct; where it cannot be (private memory of another process), calls
  /// stage the data.
  bool register_memory(void* pointer, std::size_t bytes);
  void deregister(void* pointer);

  /// Ends every wait of this rank, and, by way of them, of all others. Callable from any thread at
  /// any time.
  void abort() noexcept;
  /// Throws the Error that broke this communicator, if one did.
  void check() const;

  CallReport last_call() const noexcept;

 private:
  friend class LaunchGroup;
  friend Membership& membership(Communicator&);
  struct State;
  explicit Communicator(std::shared_ptr<State>);
  std::shared_ptr<State> state_;
};

}  // namespace treering
