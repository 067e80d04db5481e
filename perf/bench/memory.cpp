#include "perf/bench/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "kernels/exec/device.hpp"

namespace treering::perf {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;

/// A piece of host memory for each thread.
std::byte* piece() {
  thread_local std::vector<std::byte> bytes(piece_bytes);
  return bytes.data();
}

/// Calls `use(begin, count)` for piece after piece of `total`.
template <class Use>
void for_pieces(std::size_t total, std::size_t at_once, Use use) {
  for (std::size_t done = 0; done < total; done += at_once)
    use(done, std::min(at_once, total - done));
}

void set_bytes(std::byte* to, std::byte value, std::size_t bytes) {
  std::fill_n(piece(), std::min(bytes, piece_bytes), value);
  for_pieces(bytes, piece_bytes, [&](std::size_t begin, std::size_t count) {
    device().copy_now(to + begin, piece(), count);
  });
}

std::byte guard_value(int rank) { return static_cast<std::byte>(0x80 | (rank & 0x3f)); }

std::uint64_t changed_bytes(const std::byte* from, std::byte value, std::size_t bytes) {
  device().copy_now(piece(), from, bytes);
  return static_cast<std::uint64_t>(
      std::count_if(piece(), piece() + bytes, [&](std::byte b) { return b != value; }));
}

}  // namespace

void Region::guard(int rank) const {
  set_bytes(begin_ - guard_bytes, guard_value(rank), guard_bytes);
  set_bytes(begin_ + bytes_, guard_value(rank), guard_bytes);
}

std::uint64_t Region::broken_guards(int rank) const {
  return changed_bytes(begin_ - guard_bytes, guard_value(rank), guard_bytes) +
         changed_bytes(begin_ + bytes_, guard_value(rank), guard_bytes);
}

void Region::poison() const { set_bytes(begin_, std::byte{0xd7}, bytes_); }

void Region::write_input(const Pattern& p, int rank, std::size_t begin, std::size_t count,
                         std::size_t offset) const {
  const std::size_t size = size_of(p.type);
  for_pieces(count, piece_bytes / size, [&](std::size_t done, std::size_t some) {
    fill_input(p, rank, begin + done, some, piece());
    device().copy_now(at(offset + done * size), piece(), some * size);
  });
}

std::uint64_t Region::changed_input(const Pattern& p, int rank, std::size_t begin,
                                    std::size_t count, std::size_t offset) const {
  const std::size_t size = size_of(p.type);
  std::uint64_t changed = 0;
  for_pieces(count, piece_bytes / size, [&](std::size_t done, std::size_t some) {
    device().copy_now(piece(), at(offset + done * size), some * size);
    changed += count_changed(p, rank, begin + done, some, piece());
  });
  return changed;
}

std::uint64_t Region::wrong_output(const Pattern& p, int rank, std::size_t offset) const {
  const std::size_t size = size_of(p.type);
  std::uint64_t wrong = 0;
  for_pieces(output_elements(p, rank), piece_bytes / size, [&](std::size_t done, std::size_t some) {
    device().copy_now(piece(), at(offset + done * size), some * size);
    wrong += count_wrong(p, rank, done, some, piece());
  });
  return wrong;
}

Memory::Memory(std::size_t bytes, bool registered) {
  constexpr std::size_t extra = 2 * guard_bytes + most_shift;
  if (bytes > SIZE_MAX / 2 - extra)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("No machine has {} bytes for a buffer.", bytes));
  if (registered) {
    buffer_.emplace(bytes + extra);
    return;
  }
  if (device().execution() == Execution::cuda) {
    plain_ = static_cast<std::byte*>(device().allocate(bytes + extra));
    return;
  }
  // aligned_alloc wants a multiple of the alignment.
  plain_ = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + extra + 255) / 256 * 256));
  if (plain_ == nullptr)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("There is no memory for a buffer of {} bytes.", bytes));
}

Memory::~Memory() {
  if (plain_ == nullptr) return;
  device().execution() == Execution::cuda ? device().deallocate(plain_) : std::free(plain_);
}

Region Memory::region(std::size_t bytes, std::size_t shift) const {
  std::byte* begin = buffer_ ? buffer_->as<std::byte>() : plain_;
  return {begin + guard_bytes + shift, bytes};
}

}  // namespace treering::perf
