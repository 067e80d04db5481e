#pragma once

// One rank's seat in a communicator: the memory it receives in, what it knows of its peers, and the
// view of all that which its kernels get.
//
// Start-up has two phases, with everybody's facts gathered in between: the constructor makes what
// is this rank's own; map() and connect() reach the peers', and between these two verify() tries the
// mappings. The end has two as well: retire() tells the peers that this rank touches nothing of
// theirs any more, and its memory is freed once all of them have said so, or are dead. Each says so
// in the other's memory: its own may be gone by the time the other looks.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "collectives/facts.hpp"
#include "collectives/guard.hpp"
#include "collectives/memory_runs.hpp"
#include "kernels/exec/device.hpp"
#include "plan/choice_rules.hpp"
#include "plan/costs.hpp"
#include "plan/inbox.hpp"
#include "plan/mailbox.hpp"
#include "transport/mapped/peers.hpp"
#include "transport/mapped/watcher.hpp"
#include "treering/treering.hpp"

namespace treering {

class Arena;

class Membership {
 public:
  /// Allocates. Throws Error{out_of_memory}.
  Membership(Device& device, int rank, int size, const Options& options);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership();

  Facts facts() const;
  /// `facts`: of all ranks, in order. `arenas`: for the first rank of each process the descriptor of
  /// its arena; empty if all are of this process. Throws Error{mismatch} if settings differ, naming the
  /// rank and the setting.
  void map(std::span<const Facts> facts, std::vector<UniqueFd> arenas);
  void connect(std::span<const Facts> facts);

  /// Between map() and connect(): four lines of flags where this rank and a peer may leave marks,
  /// if they are restored to zeros. Nothing for peers in this process, whose memory is not mapped.
  struct MarkLines {
    std::byte *left_here, *written_here;  ///< the peer reads, the peer writes
    std::byte *left_there = nullptr,
              *written_there = nullptr;  ///< the same in the peer's memory; null: not mapped
  };
  std::optional<MarkLines> mark_lines(int peer) const;
  /// Between map() and connect(), for peers whose device memory cannot be reached: makes room in
  /// host memory for what they send; its offset in the arena.
  std::uint64_t make_staging(std::span<const int> peers);
  /// The wires between this rank and a peer then lie there, and in the peer's at `offset`.
  void use_staging(int peer, std::uint64_t offset);

  /// All ranks are connected, and say farewell to one another at the end.
  void start() { started_ = true; }

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Among the ranks on this machine.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  int channels() const { return layout_.channels; }
  /// The user wants all of them used, whatever the size of a call.
  bool all_channels() const { return agreement_.blocks != 0; }
  WireShape shape() const { return layout_.shape; }
  Device& device() const { return device_; }
  const RankView* view() const { return view_; }
  std::span<const Verdict> verdicts() const { return {verdicts_, layout_.channels}; }
  const MailboxLayout& mailbox() const { return mailbox_; }
  Guard& guard() { return *guard_; }
  std::optional<Algorithm> algorithm() const { return algorithm_; }
  std::optional<WireType> wire() const { return wire_; }
  bool deterministic() const { return agreement_.deterministic; }
  /// What the ranks say of their buffers.
  std::optional<bool> registered() const { return registered_buffers_; }
  /// What choices are made by: rank 0's, set before the first call.
  const Costs& costs() const { return costs_; }
  void use(const Costs& costs) { costs_ = costs; }
  /// What TREERING_CHOICE forces.
  const ChoiceRules& rules() const { return rules_; }

  /// This rank's edges as kernels see them, on devices whose memory the host can reach:
  /// [channel][peer].
  Edge& edge(int channel, int peer);
  LlEdge& ll_edge(int channel, int peer);

  /// Makes sure that the slots of the wires to and from a peer exist. Throws Error{out_of_memory}.
  void back(int peer, WireType wire);

  /// The same for what a message to that rank needs (`freight`: one that goes by the freight lane),
  /// or one from there.
  void back_sending(int to, bool freight);
  void back_receiving(int from);

  /// How peers reach a buffer; 0 if they cannot.
  Reference reference(const void* buffer, std::size_t bytes) const;
  /// How that one reaches it: this rank itself always does.
  Reference reference_for(int peer, const void* buffer, std::size_t bytes) const;
  bool register_memory(void* memory, std::size_t bytes);
  void deregister(void* memory);

  /// No call of this rank is running: tells the peers, and frees the seat when they have left too.
  static void retire(std::shared_ptr<Membership> seat);

 private:
  struct Peer {
    std::shared_ptr<PeerMemory> arena;  ///< null: same process
    std::unique_ptr<Mapping> inbox_mapping;
    std::byte* inbox = nullptr;  ///< where this rank writes what it sends
    bool staged = false;         ///< by way of host memory
    std::atomic<bool> dead = false;
    std::atomic<bool> backed[wire_types] = {};  ///< its slots and ours for it exist
    std::atomic<bool> backed_mail = false, backed_freight = false, backed_receiving = false;
  };

  Membership(Device& device, int rank, int size);
  std::byte* inbox_from(int peer) const;
  std::vector<std::span<std::byte>> wire_parts(std::byte* inbox, int sender) const;
  void* view_for_kernels(void* host, std::size_t bytes);
  void map_peer(int peer, const Facts& theirs, UniqueFd arena);
  void map_device_memory(Peer& peer, const Facts& theirs);
  void watch_peers(std::span<const Facts> facts);
  void warn_of_sharing(std::span<const Facts> facts) const;
  void build_view();
  PeerLanes make_lanes(int peer) const;
  std::uint64_t* farewells(int rank) const;
  void say_farewell();
  bool everyone_left() const;
  /// Where the mailbox begins in an inbox.
  std::size_t mailbox_begin() const;
  void back_part(const Peer& owner, std::byte* part, std::size_t bytes);
  /// A run of an inbox.
  struct Run {
    std::size_t offset, bytes;
  };
  Run wire_run(int channel, int sender, WireType wire) const;
  void back_outgoing(int to, WireType wire);
  void back_incoming(int from, WireType wire);

  Device& device_;
  const Arena*
      host_arena_;  ///< where buffers that kernels on the host share lie; null on other devices
  int rank_, size_;
  int local_rank_ = 0, local_size_ = 0;
  std::optional<Algorithm> algorithm_;
  std::optional<WireType> wire_;
  std::optional<bool> registered_buffers_;
  ChoiceRules rules_;
  Costs costs_{};
  ProcessIdentity process_ = this_process();
  Agreement agreement_{};
  InboxLayout layout_{};
  MailboxLayout mailbox_{};  ///< lies behind it
  std::byte* inbox_ = nullptr;
  std::byte* staging_ = nullptr;  ///< in the arena: a second inbox, for peers that are staged
  Board* board_ = nullptr;
  std::byte* private_ = nullptr;  ///< view, edges, boards, regions, sequence numbers
  Verdict* verdicts_ = nullptr;   ///< control memory
  RankView* view_ = nullptr;
  std::vector<std::span<std::byte>> viewed_;  ///< host memory that kernels reach

  std::vector<Peer> peers_;
  std::vector<Board*> boards_;
  bool one_process_ = true, started_ = false;
  MemoryRuns registered_;
  std::unique_ptr<Guard> guard_;
  std::vector<Watcher::Subscription> subscriptions_;  // last: their callbacks use the others
};

}  // namespace treering
