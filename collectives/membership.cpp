#include "collectives/membership.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/units.hpp"
#include "collectives/buffer.hpp"
#include "kernels/exec/host/arena.hpp"

namespace treering {
namespace {

constexpr std::uint32_t wire_version = 3;

// Regions that references name. 0 means "not registered".
constexpr std::uint64_t arena_region = 1;    // an offset in the peer process's arena
constexpr std::uint64_t address_region = 2;  // an address, among ranks of one process

Reference make_reference(std::uint64_t region, std::uint64_t offset) {
  return region << reference_offset_bits | offset;
}

/// Polls before a wait yields its core: a wait is short if every rank has a core of its own.
std::uint32_t spins_for(int ranks) {
  return ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? 4096 : 128;
}

ChoiceRules forced_choices(const Settings& wanted) try {
  return ChoiceRules::parse(wanted.choice);
} catch (const Error& error) {
  throw Error(ErrorCode::invalid_setting,
              fmt::format("The environment variable TREERING_CHOICE={} is not understood: {}",
                          wanted.choice, error.what()));
}

/// Two slots of each wire are the least that works. Those of up to 1 KiB are had in any case.
void check_slot(const Settings& wanted, int size, int channels) {
  const std::size_t wires = static_cast<std::size_t>(size - 1) * static_cast<std::size_t>(channels);
  if (wanted.slot <= 1024 || wires == 0 || wanted.slot <= wanted.inbox / wires / 2) return;
  throw Error(
      ErrorCode::invalid_setting,
      fmt::format("TREERING_SLOT={}: two slots for each of {} wires ({} ranks, {} blocks) "
                  "are more than TREERING_INBOX={}; make slots smaller, or the inbox larger",
                  wanted.slot, wires, size, channels, wanted.inbox));
}

/// Where the arrays that follow the view lie in one allocation.
struct PrivateLayout {
  std::size_t size, channels;
  static constexpr std::size_t edges =
      (sizeof(RankView) + line_bytes - 1) / line_bytes * line_bytes;
  std::size_t ll_edges() const { return edges + size * channels * sizeof(Edge); }
  std::size_t office() const { return ll_edges() + size * channels * sizeof(LlEdge); }
  std::size_t lanes() const { return office() + sizeof(PostOffice); }
  std::size_t boards() const { return lanes() + size * sizeof(PeerLanes); }
  std::size_t regions() const { return boards() + size * sizeof(Board*); }
  std::size_t sequence() const { return regions() + size * sizeof(PeerRegions); }
  std::size_t broken() const { return sequence() + channels * sizeof(std::uint64_t); }
  std::size_t bytes() const { return broken() + sizeof(std::uint64_t); }
};

/// Seats whose peers have not all left.
class Graveyard {
 public:
  static Graveyard& instance() {
    static Graveyard& graves =
        *new Graveyard;  // never destroyed: at exit peers may still write to our memory
    return graves;
  }

  template <class Left>
  void bury(std::shared_ptr<Membership> seat, Left left) {
    std::vector<std::shared_ptr<Membership>> gone;  // destroyed after the lock is given back
    const std::lock_guard lock(mutex_);
    if (seat != nullptr) seats_.push_back(std::move(seat));
    for (auto& s : seats_)
      if (left(*s)) gone.push_back(std::move(s));
    std::erase(seats_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Membership>> seats_;
};

}  // namespace

Membership::Membership(Device& device, int rank, int size)
    : device_(device),
      host_arena_(device.execution() == Execution::host ? &process_arena() : nullptr),
      rank_(rank),
      size_(size),
      peers_(static_cast<std::size_t>(size)) {}

/// Delegates, so that the destructor frees what there is if an allocation fails.
Membership::Membership(Device& device, int rank, int size, const Options& options)
    : Membership(device, rank, size) {
  algorithm_ = options.algorithm;
  wire_ = options.wire;
  registered_buffers_ = options.registered;
  const Settings& wanted = settings();
  if (!algorithm_) algorithm_ = wanted.algorithm;
  if (!wire_) wire_ = wanted.wire;
  rules_ = forced_choices(wanted);
  const int channels = device.blocks(wanted.blocks, size);
  check_slot(wanted, size, channels);
  agreement_ = {.version = wire_version,
                .execution = device.execution(),
                .size = size,
                .channels = channels,
                .blocks = wanted.blocks,
                .inbox = wanted.inbox,
                .slot = wanted.slot,
                .algorithm = algorithm_ ? static_cast<int>(*algorithm_) : -1,
                .wire = wire_ ? static_cast<int>(*wire_) : -1,
                .deterministic = options.deterministic || wanted.deterministic,
                .registered = options.registered ? static_cast<int>(*options.registered) : -1,
                .choice = std::hash<std::string>{}(wanted.choice)};
  layout_ = {shape_wires(wanted.inbox, size, channels, wanted.slot), static_cast<std::size_t>(size),
             static_cast<std::size_t>(channels)};
  mailbox_ = {shape_mail(wanted.inbox, size), shape_freight(wanted.inbox, size, wanted.slot),
              static_cast<std::size_t>(size)};
  inbox_ = static_cast<std::byte*>(device.reserve(mailbox_begin() + mailbox_.bytes()));
  device.back(inbox_, layout_.slots(0, 0));
  board_ =
      new (process_arena().allocate(sizeof(Board) + layout_.size * sizeof(std::uint64_t))) Board{};
  private_ = static_cast<std::byte*>(
      device.allocate(PrivateLayout{layout_.size, layout_.channels}.bytes()));
  const std::size_t verdicts = layout_.channels + 1;  // the last: of point-to-point messages
  verdicts_ = new (device.allocate_control(verdicts * sizeof(Verdict))) Verdict[verdicts]{};
}

Membership::~Membership() {
  subscriptions_.clear();
  for (const auto part : viewed_) device_.release_view(part.data(), part.size());
  peers_.clear();
  device_.deallocate_control(verdicts_);
  device_.deallocate(private_);
  process_arena().deallocate(board_);
  process_arena().deallocate(staging_);
  device_.deallocate(inbox_);
}

Facts Membership::facts() const {
  Facts mine{};
  mine.agreement = agreement_;
  mine.process = process_;
  mine.arena_bytes = process_arena().size();
  mine.board_offset =
      static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(board_) - process_arena().base());
  mine.inbox_address = reinterpret_cast<std::uint64_t>(inbox_);
  std::size_t offset = 0;
  device_.export_memory(inbox_, mine.inbox, offset);
  mine.inbox_offset = offset;
  device_.identity().copy(mine.device.data(), mine.device.size());
  return mine;
}

void Membership::map(std::span<const Facts> facts, std::vector<UniqueFd> arenas) {
  for (int r = 0; r < size_; ++r)
    require_same(facts[0].agreement, facts[static_cast<std::size_t>(r)].agreement, r);
  boards_.resize(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) {
    if (!same_host(facts[static_cast<std::size_t>(r)].process, process_)) continue;
    if (r < rank_) ++local_rank_;
    ++local_size_;
  }
  for (int r = 0; r < size_; ++r)
    map_peer(r, facts[static_cast<std::size_t>(r)],
             arenas.empty() ? UniqueFd{} : std::move(arenas[static_cast<std::size_t>(r)]));
}

/// If a GPU's memory cannot be mapped, verify() will find out, and stage.
void Membership::map_device_memory(Peer& peer, const Facts& theirs) try {
  peer.inbox_mapping = device_.import_memory(theirs.inbox);
  peer.inbox = peer.inbox_mapping->base() + theirs.inbox_offset;
} catch (const Error& error) {
  if (device_.execution() != Execution::cuda) throw;
  log(LogLevel::warn, "rank {}: {}", rank_, error.what());
}

void Membership::connect(std::span<const Facts> facts) {
  guard_ = std::make_unique<Guard>(rank_, boards_, std::span(verdicts_, layout_.channels + 1));
  build_view();
  watch_peers(facts);
  warn_of_sharing(facts);
}

void Membership::map_peer(int r, const Facts& theirs, UniqueFd arena) {
  Peer& peer = peers_[static_cast<std::size_t>(r)];
  std::byte* base = process_arena().base();
  if (same_process(theirs.process, process_)) {
    peer.inbox = reinterpret_cast<std::byte*>(theirs.inbox_address);
  } else {
    one_process_ = false;
    peer.arena = attach(theirs.process, std::move(arena), theirs.arena_bytes);
    base = peer.arena->base();
    if (device_.execution() == Execution::host) {
      peer.inbox = base + theirs.inbox_offset;
    } else {
      map_device_memory(peer, theirs);
    }
  }
  boards_[static_cast<std::size_t>(r)] = reinterpret_cast<Board*>(base + theirs.board_offset);
}

std::optional<Membership::MarkLines> Membership::mark_lines(int p) const {
  const Peer& peer = peers_[static_cast<std::size_t>(p)];
  if (peer.arena == nullptr) return std::nullopt;
  MarkLines lines{.left_here = inbox_ + layout_.credit(0, p),
                  .written_here = inbox_ + layout_.posts(0, p)};
  if (peer.inbox != nullptr) {
    lines.left_there = peer.inbox + layout_.credit(0, rank_);
    lines.written_there = peer.inbox + layout_.posts(0, rank_);
  }
  return lines;
}

/// What belongs to the wires from `sender`, in an inbox; and the credits that it gives.
std::vector<std::span<std::byte>> Membership::wire_parts(std::byte* inbox, int sender) const {
  std::vector<std::span<std::byte>> parts;
  for (int c = 0; c < channels(); ++c) {
    parts.emplace_back(inbox + layout_.posts(c, sender), layout_.shape.slots * line_bytes);
    parts.emplace_back(inbox + layout_.credit(c, sender), line_bytes);
    parts.emplace_back(inbox + layout_.ll_credit(c, sender), line_bytes);
    for (const WireType wire : {WireType::simple, WireType::ll}) {
      const Run run = wire_run(c, sender, wire);
      parts.emplace_back(inbox + run.offset, run.bytes);
    }
  }
  std::byte* const mailbox = inbox + mailbox_begin();
  parts.emplace_back(mailbox + mailbox_.flags(sender), mailbox_.flag_bytes());
  parts.emplace_back(mailbox + mailbox_.mail_slots(sender), mailbox_.mail_bytes());
  parts.emplace_back(mailbox + mailbox_.freight_slots(sender), mailbox_.freight_bytes());
  return parts;
}

std::uint64_t Membership::make_staging(std::span<const int> peers) {
  if (peers.empty()) return 0;
  Arena& arena = process_arena();
  staging_ =
      static_cast<std::byte*>(arena.allocate(mailbox_begin() + mailbox_.bytes(), Backing::later));
  for (const int peer : peers)
    for (const auto part : wire_parts(staging_, peer)) {
      arena.back(part.data(), part.size());
      view_for_kernels(part.data(), part.size());
    }
  return static_cast<std::uint64_t>(staging_ - arena.base());
}

void Membership::use_staging(int p, std::uint64_t offset) {
  Peer& peer = peers_[static_cast<std::size_t>(p)];
  peer.staged = true;
  peer.inbox_mapping.reset();
  peer.inbox = peer.arena->base() + offset;
  for (const auto part : wire_parts(peer.inbox, rank_)) view_for_kernels(part.data(), part.size());
}

/// Where this rank receives from a peer.
std::byte* Membership::inbox_from(int peer) const {
  return peers_[static_cast<std::size_t>(peer)].staged ? staging_ : inbox_;
}

void* Membership::view_for_kernels(void* host, std::size_t bytes) {
  void* const view = device_.device_view(host, bytes);
  viewed_.emplace_back(static_cast<std::byte*>(host), bytes);
  return view;
}

void Membership::watch_peers(std::span<const Facts> facts) {
  // One subscription a process: it may hold many ranks.
  std::vector<bool> watched(static_cast<std::size_t>(size_));
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const ProcessIdentity& process = facts[r].process;
    if (watched[r] || same_process(process, process_)) continue;
    std::vector<int> ranks;
    for (std::size_t other = r; other < facts.size(); ++other)
      if (same_process(facts[other].process, process)) {
        watched[other] = true;
        ranks.push_back(static_cast<int>(other));
      }
    subscriptions_.push_back(Watcher::watch(process, [this, ranks] {
      for (const int rank : ranks) {
        peers_[static_cast<std::size_t>(rank)].dead = true;
        guard_->lost(rank);
      }
    }));
  }
}

/// One rank speaks for all that share a device.
void Membership::warn_of_sharing(std::span<const Facts> facts) const {
  const Facts& mine = facts[static_cast<std::size_t>(rank_)];
  std::set<ProcessIdentity> processes;
  int sharers = 0, first = -1;
  for (int r = 0; r < size_; ++r) {
    const Facts& theirs = facts[static_cast<std::size_t>(r)];
    if (theirs.device != mine.device) continue;
    if (sharers++ == 0) first = r;
    processes.insert(theirs.process);
  }
  const std::string caution = device_.caution(sharers, static_cast<int>(processes.size()));
  if (first == rank_ && !caution.empty()) log(LogLevel::warn, "{}", caution);
}

void Membership::build_view() {
  const PrivateLayout layout{layout_.size, layout_.channels};
  std::vector<std::byte> image(layout.bytes());
  const auto at = [&](std::size_t offset) { return image.data() + offset; };

  auto* edges = reinterpret_cast<Edge*>(at(PrivateLayout::edges));
  for (int c = 0; c < channels(); ++c)
    for (int p = 0; p < size_; ++p) {
      std::byte *theirs = peers_[static_cast<std::size_t>(p)].inbox, *mine = inbox_from(p);
      edges[layout_.wire(c, p)] = {
          .to = {theirs + layout_.slots(c, rank_),
                 reinterpret_cast<Post*>(theirs + layout_.posts(c, rank_)),
                 reinterpret_cast<Flag*>(mine + layout_.credit(c, p))},
          .from = {mine + layout_.slots(c, p), reinterpret_cast<Post*>(mine + layout_.posts(c, p)),
                   reinterpret_cast<Flag*>(theirs + layout_.credit(c, rank_))},
          .sent = 0,
          .received = 0,
          .credit = 0,
          .referred = 0};
    }
  auto* ll_edges = reinterpret_cast<LlEdge*>(at(layout.ll_edges()));
  for (int c = 0; c < channels(); ++c)
    for (int p = 0; p < size_; ++p) {
      std::byte *theirs = peers_[static_cast<std::size_t>(p)].inbox, *mine = inbox_from(p);
      ll_edges[layout_.wire(c, p)] = {
          .to = {reinterpret_cast<std::uint64_t*>(theirs + layout_.ll_slots(c, rank_)),
                 mine + layout_.ll_outgoing(c, p),
                 reinterpret_cast<Flag*>(mine + layout_.ll_credit(c, p))},
          .from = {reinterpret_cast<std::uint64_t*>(mine + layout_.ll_slots(c, p)),
                   reinterpret_cast<LlHeader*>(mine + layout_.ll_header(c, p)),
                   mine + layout_.ll_incoming(c, p),
                   reinterpret_cast<Flag*>(theirs + layout_.ll_credit(c, rank_))},
          .sent = 0,
          .received = 0};
    }
  for (int p = 0; p < size_; ++p) {
    const PeerLanes lane = make_lanes(p);
    std::memcpy(at(layout.lanes() + static_cast<std::size_t>(p) * sizeof lane), &lane, sizeof lane);
  }
  PostOffice office{};
  office.mail = mailbox_.mail;
  office.freight = mailbox_.freight;
  office.lanes = reinterpret_cast<PeerLanes*>(private_ + layout.lanes());
  office.pass = 1;
  std::memcpy(at(layout.office()), &office, sizeof office);

  auto* boards = reinterpret_cast<Board**>(at(layout.boards()));
  auto* regions = reinterpret_cast<PeerRegions*>(at(layout.regions()));
  for (std::size_t p = 0; p < boards_.size(); ++p) {
    boards[p] = static_cast<Board*>(view_for_kernels(boards_[p], sizeof(Board)));
    const auto& arena = peers_[p].arena;
    regions[p].base[arena_region] = arena ? arena->base() : process_arena().base();
    regions[p].base[address_region] = nullptr;
  }

  const RankView view{
      .rank = rank_,
      .size = size_,
      .channels = channels(),
      .shape = layout_.shape,
      .edges = reinterpret_cast<Edge*>(private_ + PrivateLayout::edges),
      .ll_edges = reinterpret_cast<LlEdge*>(private_ + layout.ll_edges()),
      .board = boards[rank_],
      .boards = reinterpret_cast<Board* const*>(private_ + layout.boards()),
      .regions = reinterpret_cast<const PeerRegions*>(private_ + layout.regions()),
      .sequence = reinterpret_cast<std::uint64_t*>(private_ + layout.sequence()),
      .broken = reinterpret_cast<std::uint64_t*>(private_ + layout.broken()),
      .abort = &boards[rank_]->abort,
      .verdicts = verdicts_,
      .office = reinterpret_cast<PostOffice*>(private_ + layout.office()),
      .spins = spins_for(size_),
  };
  std::memcpy(image.data(), &view, sizeof view);
  device_.copy_now(private_, image.data(), image.size());
  view_ = reinterpret_cast<RankView*>(private_);
}

std::size_t Membership::mailbox_begin() const {
  constexpr std::size_t page = 4096;
  return (layout_.bytes() + page - 1) / page * page;
}

PeerLanes Membership::make_lanes(int p) const {
  std::byte* mine = inbox_from(p) + mailbox_begin();
  std::byte* theirs = peers_[static_cast<std::size_t>(p)].inbox + mailbox_begin();
  const auto posts = [](std::byte* at) { return reinterpret_cast<Post*>(at); };
  const auto flag = [](std::byte* at) { return reinterpret_cast<Flag*>(at); };
  const MailboxLayout& box = mailbox_;
  PeerLanes lane{};
  lane.mail.to = {theirs + box.mail_slots(rank_), posts(theirs + box.mail_posts(rank_)),
                  flag(mine + box.mail_credit(p))};
  lane.mail.from = {mine + box.mail_slots(p), posts(mine + box.mail_posts(p)),
                    flag(theirs + box.mail_credit(rank_))};
  lane.freight.to = {theirs + box.freight_slots(rank_), posts(theirs + box.freight_posts(rank_)),
                     flag(mine + box.freight_credit(p))};
  lane.freight.from = {mine + box.freight_slots(p), posts(mine + box.freight_posts(p)),
                       flag(theirs + box.freight_credit(rank_))};
  lane.replies = flag(mine + box.replies(p));
  lane.replies_to = flag(theirs + box.replies(rank_));
  return lane;
}

Edge& Membership::edge(int channel, int peer) {
  return reinterpret_cast<Edge*>(private_ + PrivateLayout::edges)[layout_.wire(channel, peer)];
}

LlEdge& Membership::ll_edge(int channel, int peer) {
  const PrivateLayout layout{layout_.size, layout_.channels};
  return reinterpret_cast<LlEdge*>(private_ + layout.ll_edges())[layout_.wire(channel, peer)];
}

void Membership::back(int peer, WireType wire) {
  std::atomic<bool>& backed =
      peers_[static_cast<std::size_t>(peer)].backed[static_cast<std::size_t>(wire)];
  if (backed || peer == rank_) return;
  back_outgoing(peer, wire);
  back_incoming(peer, wire);
  backed = true;
}

/// A part of a rank's inbox.
void Membership::back_part(const Peer& owner, std::byte* part, std::size_t bytes) {
  if (owner.arena == nullptr)
    device_.back(part, bytes);
  else if (device_.execution() == Execution::host)
    owner.arena->back(static_cast<std::size_t>(part - owner.arena->base()), bytes);
}

/// What lies in the receiver's inbox for messages of a sender.
Membership::Run Membership::wire_run(int channel, int sender, WireType wire) const {
  if (wire == WireType::ll) return {layout_.ll_slots(channel, sender), layout_.ll_wire_bytes()};
  return {layout_.slots(channel, sender), layout_.wire_bytes()};
}

/// The sender sees to the slots that it fills, since it is the first who touches them.
void Membership::back_outgoing(int to, WireType wire) {
  const Peer& peer = peers_[static_cast<std::size_t>(to)];
  for (int c = 0; c < channels(); ++c) {
    const Run run = wire_run(c, rank_, wire);
    back_part(peer, peer.inbox + run.offset, run.bytes);
  }
}

/// The receiver maps the slots of another process, lest every first use be a page fault; of LL wires it uses
/// some memory first.
void Membership::back_incoming(int from, WireType wire) {
  if (wire == WireType::simple && peers_[static_cast<std::size_t>(from)].arena == nullptr) return;
  for (int c = 0; c < channels(); ++c) {
    const Run run = wire_run(c, from, wire);
    device_.back(inbox_ + run.offset, run.bytes);
  }
}

/// Both flags, since the receiver answers; what the receiver may look at before that, it sees to.
void Membership::back_sending(int to, bool freight) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  if (peer.staged) return;  // from the start
  std::byte* theirs = peer.inbox + mailbox_begin();
  if (!peer.backed_mail) {
    device_.back(inbox_ + mailbox_begin() + mailbox_.flags(to), mailbox_.flag_bytes());
    back_part(peer, theirs + mailbox_.flags(rank_), mailbox_.flag_bytes());
    back_part(peer, theirs + mailbox_.mail_slots(rank_), mailbox_.mail_bytes());
    peer.backed_mail = true;
  }
  if (!freight || peer.backed_freight) return;
  back_part(peer, theirs + mailbox_.freight_slots(rank_), mailbox_.freight_bytes());
  peer.backed_freight = true;
}

void Membership::back_receiving(int from) {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  if (peer.backed_receiving || peer.staged) return;
  device_.back(inbox_ + mailbox_begin() + mailbox_.flags(from), mailbox_.flag_bytes());
  peer.backed_receiving = true;
}

Reference Membership::reference(const void* buffer, std::size_t bytes) const {
  if (buffer == nullptr || bytes == 0) return 0;
  if (host_arena_ != nullptr && host_arena_->contains(buffer, bytes))
    return make_reference(
        arena_region,
        static_cast<std::uint64_t>(static_cast<const std::byte*>(buffer) - host_arena_->base()));
  if (!one_process_ || !(buffer_holds(buffer, bytes) || registered_.hold(buffer, bytes))) return 0;
  return make_reference(address_region, reinterpret_cast<std::uint64_t>(buffer));
}

Reference Membership::reference_for(int peer, const void* buffer, std::size_t bytes) const {
  return peer == rank_ ? make_reference(address_region, reinterpret_cast<std::uint64_t>(buffer))
                       : reference(buffer, bytes);
}

bool Membership::register_memory(void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes != 0 && (memory == nullptr || begin + bytes < begin))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("register_memory on rank {}: {} at {} is no memory; pass a buffer and "
                            "its size",
                            rank_, format_size(bytes), memory),
                {rank_});
  if (reference(memory, bytes) != 0) return true;
  if (!one_process_) return false;
  registered_.add(memory, bytes);
  return true;
}

void Membership::deregister(void* memory) { registered_.remove(memory); }

/// They lie behind a rank's board, one for each of its peers: arena memory begins as zeros.
std::uint64_t* Membership::farewells(int rank) const {
  return reinterpret_cast<std::uint64_t*>(boards_[static_cast<std::size_t>(rank)] + 1);
}

/// The last that this rank does to its peers' memory. If the start failed theirs may be gone: then
/// nothing is written there.
void Membership::say_farewell() {
  guard_->close();
  for (Peer& peer : peers_) peer.inbox_mapping.reset();  // its owner frees it after our farewell
  store_release(board_->closed.value, 1);
  for (int p = 0; p < size_; ++p)
    if (started_ || p == rank_) store_release(farewells(p)[rank_], 1);
}

bool Membership::everyone_left() const {
  for (std::size_t p = 0; p < peers_.size(); ++p)
    if (!peers_[p].dead && load_acquire(farewells(rank_)[p]) == 0) return false;
  return true;
}

void Membership::retire(std::shared_ptr<Membership> seat) {
  if (getpid() != seat->process_.pid) {  // in a forked child the seat is still the parent's
    static_cast<void>(new std::shared_ptr(std::move(seat)));  // never destroyed
    return;
  }
  seat->say_farewell();
  Graveyard::instance().bury(std::move(seat),
                             [](const Membership& s) { return s.everyone_left(); });
}

}  // namespace treering
