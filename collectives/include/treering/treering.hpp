#pragma once

/// Treering: collective communication among ranks, on GPUs or CPUs.
///
///     auto comm = treering::Communicator::create(id, world_size, rank);
///     comm.all_reduce(in, out, count, treering::DataType::f32, treering::ReduceOp::sum);

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "treering/error.hpp"
#include "treering/export.hpp"
#include "treering/types.hpp"

namespace TREERING_API treering {

/// What the ranks of one communicator share at start. Made once, by anyone; passed on by the user,
/// as 128 bytes or as text. Any process of this machine may make it, and need not stay alive.
class UniqueId {
 public:
  static constexpr std::size_t size = 128;

  /// A new id, different from every other.
  static UniqueId create();
  /// The one that belongs to these words: for ranks that share words, and know that nobody else
  /// uses the same.
  static UniqueId derive(std::string_view words);
  /// From text() or bytes(). Throws Error{invalid_argument} if it was cut short or changed.
  static UniqueId parse(std::string_view text);
  static UniqueId from_bytes(const void* bytes128);

  std::string text() const;
  const std::array<std::byte, size>& bytes() const noexcept { return bytes_; }

 private:
  UniqueId() = default;
  std::array<std::byte, size> bytes_{};
};

/// What a launcher says of this process: torchrun, mpirun (Open MPI), mpiexec (MPICH, Intel MPI),
/// srun, or whoever set TREERING_RANK, TREERING_SIZE and TREERING_ID. docs/starting.md has the
/// variables of each.
struct Place {
  int rank, size;
  int local_rank, local_size;  ///< among the ranks on this machine
  UniqueId id;                 ///< the same on all ranks of this job, another in every other job
  std::string launcher;        ///< for people

  /// Thread-safe; the same at every call. Throws Error: `invalid_setting` names the variable that
  /// is missing or wrong, or all that were looked for; `unsupported` if the job spans machines.
  static Place from_environment();
};

class Communicator;
class Device;
class Membership;

/// Work that runs in order while the caller goes on: a CUDA stream, or a thread of Treering's on
/// the host. Destruction waits for the work, and says nothing of what failed: synchronize() does. Thread-safe.
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
/// in which CUDA promises that they run at the same time. One call of each rank; not nested. None of
/// them starts before all can: messages that are sent in a group must be received in it.
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
  std::optional<WireType> wire = {};        ///< used wherever data is moved
  /// Reductions depend on nothing but the inputs and the order of the ranks: see docs/numerics.md.
  bool deterministic = false;
  /// Whether the buffers of most calls are a Buffer's, or registered, on all ranks: then the algorithms that are fastest
  /// for that are chosen. Nothing: both are counted on. False: no rank asks the others for theirs, which saves a
  /// hand-shake. Only speed depends on it.
  std::optional<bool> registered = {};
};

/// How one call is made.
struct CallOptions {
  Stream* stream = nullptr;  ///< null: the call returns when its result is there
  /// Must be the same on all ranks; Error{unsupported} if there is none.
  std::optional<Algorithm> algorithm = {};
  /// Must be the same on all ranks; Error{unsupported} for a barrier over LL. Over LL buffers are never accessed
  /// directly. Messages have lanes of their own, which this does not change.
  std::optional<WireType> wire = {};
  /// What is forced at which sizes, as in TREERING_CHOICE: "all_reduce:0-64K=one_shot,64K-=two_shot". Must be the same
  /// on all ranks; read at each call, which costs some time. Error{invalid_argument} names the place in it that is not
  /// understood.
  std::string_view choice = {};
  /// For premul_sum: what this rank's input is multiplied by; need not be the same on all ranks.
  double scale = 1;
};

/// Uneven parts of a buffer, one for each rank, in elements.
struct Parts {
  std::span<const std::size_t> counts;
  /// Where each part begins. Empty: they follow one another.
  std::span<const std::size_t> displacements = {};
};

/// For receives: a message of any rank; one with any tag.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// What was received: from whom, with which tag, how many elements.
struct Message {
  int source;
  int tag;
  std::size_t count;
};

/// One message to be sent or received, for Communicator::exchange().
struct Transfer {
  /// `count` elements at `data`, to rank `to`.
  static Transfer send(const void* data, std::size_t count, DataType type, int to, int tag = 0) {
    return {true, const_cast<void*>(data), count, type, to, tag, nullptr};
  }
  /// `count` elements to `data`, from rank `from` or any_source, with that tag or any_tag. What was
  /// received is written to `received`, if that is not null, before the exchange returns; on a
  /// stream, before its synchronize() does: until then it must stay alive.
  static Transfer receive(void* data, std::size_t count, DataType type, int from, int tag = 0,
                          Message* received = nullptr) {
    return {false, data, count, type, from, tag, received};
  }

  bool sends;
  void* data;
  std::size_t count;
  DataType type;
  int peer;
  int tag;
  Message* received;
};

/// What the latest collective call did, for people and benchmarks.
struct CallReport {
  Algorithm algorithm;
  WireType wire;
  bool direct;  ///< every rank's buffers were accessed directly; false: staged, or not yet complete
  int blocks;
};

/// A group of ranks that call collectives together, all in the same order. One object per rank. Any
/// thread may call; calls of one rank take effect in the order in which they are made. Move-only; what
/// was moved from may only be destroyed or assigned to, here as with Stream.
///
/// Buffers hold elements of `type` and are aligned to it. In place: output == input, but where a buffer has
/// a part for each rank: there the other is this rank's part of it (reduce_scatter and scatter: output ==
/// input + rank × count; all_gather and gather: input == output + rank × count). Buffers that overlap in
/// another way are refused. Pointers may be null where nothing is read or written. Collectives without root
/// synchronise even if all counts are zero; with a root, whoever gives may return before the others have it.
/// Every method throws Error: `invalid_argument` before anything is sent, the communicator stays usable;
/// `mismatch`, `peer_lost`, `aborted` on every rank, after which it is broken; a rank that had nothing to wait for
/// in the call that failed has the error at the latest in the second call after it in which all ranks wait for all.
class Communicator {
 public:
  /// Joins `world_size` ranks of this machine as number `rank`. All ranks call this, each in a
  /// process or thread of its own; it returns when all have come. Throws Error{timeout} naming the
  /// ranks that are missing.
  static Communicator create(const UniqueId& id, int world_size, int rank,
                             const Options& options = {});
  /// Joins all ranks that a launcher started, at its Place::from_environment(). A program may do so
  /// several times, one after the other: each time another communicator. Throws as both do.
  static Communicator create_from_environment(const Options& options = {});
  /// All ranks of a communicator within this process, created together by one thread. If that thread makes all their
  /// calls, they must be on streams, of each rank one, or in a LaunchGroup: a blocking call waits for the others.
  static std::vector<Communicator> create_local(int world_size, const Options& options = {});

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  /// Waits for this rank's calls on streams, and so for the ranks that these need, but not for others to leave:
  /// call abort() first if they will not come.
  ~Communicator();

  int rank() const noexcept;
  int size() const noexcept;
  /// This rank's number in the communicator that was created first, of which this one is a group,
  /// or a group of a group; rank() if it is none.
  int global_rank() const noexcept;
  /// The same for any rank of this communicator. Throws Error{invalid_argument}.
  int global_rank(int rank_here) const;
  /// Among this communicator's ranks on this machine.
  int local_rank() const noexcept;
  int local_size() const noexcept;

  /// One group for each color: the ranks that pass it, ordered by key, then by rank. A rank with a
  /// negative color is in none. All ranks call this, like a blocking collective, and those of one
  /// color then join their group. Groups are communicators of their own: they may overlap, nest,
  /// outlive this one, and be used at the same time. Those of the same members must be made in the
  /// same order on all of these, and on a GPU while no call of theirs is running; threads that make
  /// them at once take turns. Throws Error{timeout} with the members, as ranks of this communicator,
  /// that did not join.
  std::optional<Communicator> split(int color, int key) const;
  /// The group of these ranks, in this order. They alone call it, all with the same list. Throws
  /// Error{invalid_argument} before anything is sent: a rank that there is not, is there twice, or
  /// this one missing. Otherwise like split().
  Communicator subset(std::span<const int> ranks) const;
  /// split() for one thread that has all ranks, from create_local() or this: colors[r], keys[r] and
  /// element r of the result belong to rank r. Local.
  static std::vector<std::optional<Communicator>> split_local(std::span<Communicator> ranks,
                                                              std::span<const int> colors,
                                                              std::span<const int> keys);

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

  /// A message of `count` elements to rank `to`, which receives it; `to` may be this rank itself.
  ///
  /// A message has a tag, 0 or above. A receive takes the first message that was sent to it from
  /// `from` with its tag, or from any_source, or with any_tag. Type and count must be the same on
  /// both sides: else both ranks get Error{mismatch}. Messages are independent of collectives and of
  /// their order. They, too, throw `invalid_argument` before anything is sent (a rank that does not
  /// exist, a negative tag, null with a count), and `peer_lost` if the peer dies, or leaves without
  /// having done its part.
  ///
  /// A send returns when `data` may be changed: short messages (2 KiB; less where ranks are many)
  /// are sent at once, up to 64 to one rank (fewer with a small TREERING_INBOX) that it has not
  /// received; otherwise when the receiver takes them. So two ranks that first send each other a
  /// long message wait for ever: use exchange().
  ///
  /// On a stream: calls of one stream come one after the other. On the host, calls on different
  /// streams and of different threads progress side by side, whatever waits in the others; which of
  /// two messages with one tag comes first is then not defined. On a GPU all calls of a rank run one
  /// after the other, collectives included: what must progress together belongs in one exchange().
  void send(const void* data, std::size_t count, DataType type, int to, int tag = 0,
            const CallOptions& how = {});
  /// The opposite. On a stream it returns what it was asked for; what came, exchange() tells.
  Message receive(void* data, std::size_t count, DataType type, int from, int tag = 0,
                  const CallOptions& how = {});
  /// Any number of messages, which progress together: none waits for another, whatever their order
  /// and whatever that of their peers is. Of receives that a message could match, the first takes
  /// it; messages to one rank are sent in the order given. Returns when all are done. Buffers that are received
  /// into must not overlap others; that is not checked.
  void exchange(std::span<const Transfer> transfers, const CallOptions& how = {});
  void exchange(std::initializer_list<Transfer> transfers, const CallOptions& how = {}) {
    exchange(std::span(transfers.begin(), transfers.size()), how);
  }

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
  friend Communicator join_on(Device&, const UniqueId&, int size, int rank);
  struct State;
  struct Origin;
  explicit Communicator(std::shared_ptr<State>);
  static Communicator join(Device&, const Origin&, int rank,
                           const std::function<void()>& look = {});
  static std::vector<Communicator> join_local(const Origin&);
  std::shared_ptr<State> state_;
};

}  // namespace treering
