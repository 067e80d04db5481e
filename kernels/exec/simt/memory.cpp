#include "kernels/exec/simt/memory.hpp"

namespace treering::simt {
namespace {

constexpr std::size_t sector_bytes = 32;
constexpr std::size_t sectors = std::size_t{1} << 14, releases = std::size_t{1} << 12;

// Copied as two values, not by memcpy, which the sanitizers would see; neighbours of what the
// kernel touches are read, too.
using Half [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;

TREERING_UNSEEN std::size_t hash(std::uintptr_t x) {
  return static_cast<std::size_t>((x * 0x9e3779b97f4a7c15) >> 40);
}

}  // namespace

struct alignas(64) StaleMemory::Sector {
  std::uintptr_t number;  // the address / 32
  std::uint64_t time;     // of the last store
  int writer;
  Half before[2];  // what it held
};

struct StaleMemory::Release {
  const std::uint64_t* flag;
  std::uint64_t value;
  std::uint64_t everyone;
  std::uint64_t of[Knowledge::writers];
};

StaleMemory::StaleMemory() : sectors_(new Sector[sectors]{}), releases_(new Release[releases]{}) {}

TREERING_UNSEEN StaleMemory::Sector& StaleMemory::sector_of(const std::byte* address) const {
  return sectors_[hash(reinterpret_cast<std::uintptr_t>(address) / sector_bytes) % sectors];
}

TREERING_UNSEEN StaleMemory::Release& StaleMemory::release_of(const std::uint64_t& flag) const {
  return releases_[hash(reinterpret_cast<std::uintptr_t>(&flag)) % releases];
}

TREERING_UNSEEN void StaleMemory::begin(Knowledge& mine) {
  mine.everyone = now_;
  mine.self = Knowledge::nobody;
  if (free_ == 0) return;  // then its stores are not remembered
  mine.self = __builtin_ctzll(free_);
  free_ &= free_ - 1;
}

TREERING_UNSEEN void StaleMemory::end(Knowledge& mine) {
  if (mine.self != Knowledge::nobody) free_ |= std::uint64_t{1} << mine.self;
}

TREERING_UNSEEN TREERING_UNCHECKED void StaleMemory::store(Knowledge& mine,
                                                           const std::byte* address) {
  const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(address) / sector_bytes;
  Sector& sector = sector_of(address);
  ++now_;
  if (mine.self == Knowledge::nobody) {
    if (sector.number == number) sector.number = 0;
    return;
  }
  // Nobody can know of some of the stores between two flags and not of the others.
  const bool together = sector.number == number && sector.writer == mine.self &&
                        sector.time > mine.raised && sector.time > mine.everyone;
  sector.time = now_;
  if (together) return;
  sector.number = number;
  sector.writer = mine.self;
  const auto* memory = reinterpret_cast<const Half*>(number * sector_bytes);
  sector.before[0] = memory[0];
  sector.before[1] = memory[1];
}

TREERING_UNSEEN void StaleMemory::load(const Knowledge& mine, const std::byte* address,
                                       std::byte* value, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Sector& sector = sector_of(address);
  if (sector.number != at / sector_bytes || sector.writer == mine.self ||
      sector.time <= mine.everyone || sector.time <= mine.of[sector.writer])
    return;
  const auto* before = reinterpret_cast<const std::byte*>(sector.before);
  for (std::size_t i = 0; i < bytes; ++i) value[i] = before[at % sector_bytes + i];
}

TREERING_UNSEEN void StaleMemory::raise(Knowledge& mine, const std::uint64_t& flag,
                                        std::uint64_t value, bool ordered) {
  mine.raised = now_;
  if (mine.self != Knowledge::nobody) mine.of[mine.self] = now_;
  Release& release = release_of(flag);
  release.flag = &flag;
  release.value = value;
  release.everyone = ordered ? mine.everyone : 0;
  for (int w = 0; w < Knowledge::writers; ++w) release.of[w] = ordered ? mine.of[w] : 0;
}

TREERING_UNSEEN void StaleMemory::acquire(Knowledge& mine, const std::uint64_t& flag,
                                          std::uint64_t value) const {
  const Release& release = release_of(flag);
  if (release.flag != &flag || release.value != value) {
    mine.everyone = now_;
    return;
  }
  if (release.everyone > mine.everyone) mine.everyone = release.everyone;
  for (int w = 0; w < Knowledge::writers; ++w)
    if (release.of[w] > mine.of[w]) mine.of[w] = release.of[w];
}

}  // namespace treering::simt
