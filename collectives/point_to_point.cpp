#include "collectives/point_to_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/units.hpp"
#include "collectives/launch_group.hpp"
#include "collectives/state.hpp"
#include "collectives/stream.hpp"
#include "plan/choice.hpp"

namespace treering {
namespace {

static_assert(any_source == wildcard && any_tag == wildcard);

// On devices that should not allocate later: exchanges under way, and messages in each.
constexpr int prepared_parcels = 16;
constexpr std::size_t parcel_capacity = 64;

std::size_t bytes_of(const Transfer& t) { return t.count * size_of(t.type); }

Batch* make_batch(Device& device, std::size_t capacity) {
  auto* memory = static_cast<std::byte*>(
      device.allocate_control(sizeof(Batch) + capacity * sizeof(Operation)));
  auto* operations = reinterpret_cast<Operation*>(memory + sizeof(Batch));
  return new (memory)
      Batch{.finished = 0, .operations = operations, .count = 0, .left = 0, .next = nullptr};
}

/// Backs what the message will need.
void back(Membership& seat, const Transfer& t) {
  const bool is_long = bytes_of(t) > seat.mailbox().mail.slot_bytes;
  if (t.sends)
    return seat.back_sending(t.peer,
                             is_long && seat.reference_for(t.peer, t.data, bytes_of(t)) == 0);
  if (t.peer != any_source) return seat.back_receiving(t.peer);
  for (int peer = 0; peer < seat.size(); ++peer) seat.back_receiving(peer);
}

}  // namespace

void check_transfer(const Transfer& t, int rank, int size) {
  const auto refuse = [&](const std::string& why) {
    throw refusal(t.sends ? "send" : "receive", rank, why);
  };
  const bool anyone = !t.sends && t.peer == any_source;
  if (!anyone && (t.peer < 0 || t.peer >= size))
    refuse(fmt::format("`{}` = {}, but ranks go from 0 to {}", t.sends ? "to" : "from", t.peer,
                       size - 1));
  if (t.tag < 0 && (t.sends || t.tag != any_tag))
    refuse(fmt::format("`tag` = {}; tags are 0 or above", t.tag));
  if (static_cast<int>(t.type) >= data_types)
    refuse(fmt::format("`type` = {} is not a DataType", static_cast<int>(t.type)));
  const std::size_t element = size_of(t.type);
  const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / element;
  if (t.count > most)
    refuse(fmt::format("`count` = {} is more than any memory holds: at most {} elements of {}",
                       t.count, most, name(t.type)));
  if (t.data == nullptr && t.count != 0)
    refuse(fmt::format("`data` is null, but count is {}; pass a buffer of {}", t.count,
                       format_size(bytes_of(t))));
  if (t.count != 0 && !device().reaches(t.data))
    refuse(
        fmt::format("`data` = {} is memory that {} cannot reach; pass device memory, such as a "
                    "treering::Buffer",
                    t.data, device().describe()));
  if (reinterpret_cast<std::uintptr_t>(t.data) % element != 0)
    refuse(fmt::format("`data` = {} is not aligned to its element: {} needs a multiple of {}",
                       t.data, name(t.type), element));
}

Parcel::Parcel(Device& device, std::size_t capacity)
    : device_(device),
      capacity_(capacity),
      batch_(make_batch(device, capacity)),
      event_(device.create_event()) {}

Parcel::~Parcel() { device_.deallocate_control(batch_); }

void Parcel::fill(const Membership& seat, std::span<const Transfer> transfers,
                  std::optional<Algorithm> forced) {
  *batch_ = {.finished = 0,
             .operations = batch_->operations,
             .count = static_cast<std::int32_t>(transfers.size()),
             .left = static_cast<std::int32_t>(transfers.size()),
             .next = nullptr};
  received_.clear();
  Operation* operation = batch_->operations;
  for (const Transfer& t : transfers) {
    const std::size_t bytes = bytes_of(t);
    const bool may_share = t.sends && bytes > seat.mailbox().mail.slot_bytes;
    const Choice choice = choose({.collective = Collective::point_to_point,
                                  .bytes = bytes,
                                  .element_bytes = size_of(t.type),
                                  .size = seat.size(),
                                  .channels = 1,
                                  .all_channels = false,
                                  .shape = seat.mailbox().freight},
                                 seat.costs(), {.algorithm = forced});
    new (operation++)
        Operation{.data = static_cast<std::byte*>(t.data),
                  .bytes = bytes,
                  .reference = may_share ? seat.reference_for(t.peer, t.data, bytes) : 0,
                  .peer = t.peer,
                  .tag = t.tag,
                  .type = t.type,
                  .streaming = choice.streaming && !t.sends,
                  .phase = t.sends ? Phase::posting : Phase::wanted,
                  .number = 0,
                  .moved = 0,
                  .from = nullptr};
    received_.push_back(t.received);
  }
}

bool Parcel::deliver() {
  if (load_acquire(batch_->finished) == 0) return false;
  for (std::size_t i = 0; i < received_.size(); ++i) {
    const Operation& o = batch_->operations[i];
    if (received_[i] != nullptr) *received_[i] = {o.peer, o.tag, o.bytes / size_of(o.type)};
  }
  received_.clear();
  return true;
}

struct PostRoom::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Parcel>> idle;
};

PostRoom::PostRoom(Device& device) : device_(device), pool_(std::make_shared<Pool>()) {
  if (device.side_by_side()) return;
  for (int i = 0; i < prepared_parcels; ++i)
    pool_->idle.push_back(std::make_unique<Parcel>(device, parcel_capacity));
}

PostRoom::~PostRoom() = default;

std::shared_ptr<Parcel> PostRoom::take(std::size_t transfers) {
  std::unique_ptr<Parcel> parcel;
  {
    const std::lock_guard lock(pool_->mutex);
    auto& idle = pool_->idle;
    const auto fits = std::ranges::find_if(
        idle, [&](const auto& candidate) { return candidate->capacity() >= transfers; });
    if (fits != idle.end()) {
      parcel = std::move(*fits);
      idle.erase(fits);
    }
  }
  if (parcel == nullptr) parcel = std::make_unique<Parcel>(device_, std::bit_ceil(transfers));
  return {parcel.release(), [pool = pool_](Parcel* used) {
            const std::lock_guard lock(pool->mutex);
            pool->idle.emplace_back(used);
          }};
}

void PostRoom::sent(std::shared_ptr<Parcel> parcel) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sent_, [](const auto& earlier) { return earlier->event().done(); });
  sent_.push_back(std::move(parcel));
}

void PostRoom::synchronize() {
  const std::lock_guard lock(mutex_);
  for (const auto& parcel : sent_) parcel->event().synchronize();
  sent_.clear();
}

void Communicator::State::exchange(std::span<const Transfer> transfers, const CallOptions& how) {
  for (const Transfer& t : transfers) check_transfer(t, seat->rank(), seat->size());
  Launch launch{.view = seat->view(), .args = {}, .blocks = 1};
  launch.args.call.collective = Collective::point_to_point;
  launch.args.call.algorithm = Algorithm::pairwise;
  std::unique_lock lock(mutex, std::defer_lock);
  if (is_ordered(launch)) lock.lock();
  guard->check();
  if (transfers.empty()) return;

  std::shared_ptr<Parcel> parcel;
  provide("exchange", [&] { parcel = post_room.take(transfers.size()); });
  refusing("exchange", seat->rank(), [&] { parcel->fill(*seat, transfers, how.algorithm); });
  launch.args.output = reinterpret_cast<std::byte*>(parcel->batch());
  provide("exchange", [&] {
    for (const Transfer& t : transfers) back(*seat, t);
  });
  if (how.stream != nullptr) return enqueue(launch, *how.stream, parcel);
  run(launch);
  parcel->deliver();
}

void Communicator::send(const void* data, std::size_t count, DataType type, int to, int tag,
                        const CallOptions& how) {
  exchange({Transfer::send(data, count, type, to, tag)}, how);
}

Message Communicator::receive(void* data, std::size_t count, DataType type, int from, int tag,
                              const CallOptions& how) {
  Message received{from, tag, count};
  exchange({Transfer::receive(data, count, type, from, tag, how.stream ? nullptr : &received)},
           how);
  return received;
}

void Communicator::exchange(std::span<const Transfer> transfers, const CallOptions& how) {
  state_->exchange(transfers, how);
}

}  // namespace treering
