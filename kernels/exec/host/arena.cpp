#include "kernels/exec/host/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <new>

#include <fmt/format.h>

#include "base/free_memory.hpp"
#include "base/system_error.hpp"
#include "base/units.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment = 256;

constexpr std::size_t page_floor(std::size_t bytes) { return bytes / page_bytes * page_bytes; }
constexpr std::size_t page_ceiling(std::size_t bytes) { return page_floor(bytes + page_bytes - 1); }

Error no_memory(std::size_t bytes, std::size_t free) {
  return Error(
      ErrorCode::out_of_memory,
      fmt::format("cannot get {} of shared memory: {} are free on this machine (or in this "
                  "container); use smaller buffers or fewer ranks, end other programs, or raise "
                  "the container's memory limit",
                  format_size(bytes), format_size(free)));
}

std::size_t file_size_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  return limit.rlim_cur;  // RLIM_INFINITY is the largest number
}

UniqueFd create_file(std::size_t bytes) {
  // Beyond this limit ftruncate() would end the process by a signal.
  if (bytes > file_size_limit())
    throw Error(
        ErrorCode::system,
        fmt::format("cannot make a shared arena of {}: the limit on file sizes is {}; raise it "
                    "(ulimit -f) or set TREERING_ARENA to less",
                    format_size(bytes), format_size(file_size_limit())));
  UniqueFd file(memfd_create("treering", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw system_error("create a shared arena (memfd_create)");
  // In a program that closed its standard streams, what it prints must not land in the arena.
  if (file.get() <= STDERR_FILENO)
    file = UniqueFd(fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!file) throw system_error("create a shared arena (F_DUPFD_CLOEXEC)");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    throw system_error("make a shared arena of " + format_size(bytes) + " (ftruncate)");
  // Nobody can cut it short under those who have mapped it.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw system_error("seal a shared arena (F_ADD_SEALS)");
  return file;
}

/// Looks at the machine's free memory once in a while: the kernel would rather kill a process than
/// refuse.
void check_free_memory(std::size_t bytes) {
  constexpr std::size_t look_every = 16 << 20;
  static std::atomic<std::size_t> unchecked{0};
  if (unchecked.fetch_add(bytes, std::memory_order_relaxed) + bytes < look_every) return;
  unchecked.store(0, std::memory_order_relaxed);
  const std::size_t free = free_memory();
  if (bytes > free) throw no_memory(bytes, free);
}

}  // namespace

void back_pages(int arena, std::size_t offset, std::size_t bytes) {
  // A signal undoes the piece that it interrupts, so pieces must be short.
  constexpr std::size_t piece = 4 << 20;
  check_free_memory(bytes);
  const std::size_t end = page_ceiling(offset + bytes);
  for (std::size_t at = page_floor(offset); at < end;) {
    const std::size_t length = std::min(piece, end - at);
    if (fallocate(arena, 0, static_cast<off_t>(at), static_cast<off_t>(length)) == 0)
      at += length;
    else if (errno == ENOSPC || errno == ENOMEM)
      throw no_memory(bytes, free_memory());
    else if (errno != EINTR)
      throw system_error("get " + format_size(bytes) + " of shared memory (fallocate)");
  }
}

void map_pages(const std::byte* begin, std::size_t bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = page_floor(address), end = page_ceiling(address + bytes);
  // A kernel older than 5.14 refuses, and then the pages are mapped one by one when they are touched.
  madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

Arena::Arena(std::size_t bytes)
    : size_(page_ceiling(std::max(bytes, 2 * page_bytes))),
      owner_(getpid()),
      file_(create_file(size_)),
      // Processes differ too: a rank reads its own input beside its neighbour's.
      colour_(static_cast<unsigned>(owner_)) {
  back_pages(file_.get(), 0, page_bytes);
  void* const base =
      mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (base == MAP_FAILED)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format(
            "{}; set TREERING_ARENA to less, or raise the limit on address space (ulimit -v)",
            system_error("map a shared arena of " + format_size(size_)).what()));
  base_ = static_cast<std::byte*>(base);
  madvise(base_, size_, MADV_DONTFORK);
  madvise(base_, size_, MADV_DONTDUMP);
  new (base_) ArenaHeader{arena_magic, size_};
  holes_.emplace(page_bytes, size_ - page_bytes);
}

Arena::~Arena() {
  // In a forked child something else may lie there by now.
  if (getpid() == owner_) munmap(base_, size_);
}

void* Arena::allocate(std::size_t bytes, Backing backing) {
  refuse_in_forked_child();
  bytes = std::max<std::size_t>(bytes, 1);
  const std::size_t offset = take(bytes);
  try {
    if (backing == Backing::now) back_pages(file_.get(), offset, bytes);
  } catch (...) {
    give_back(offset, forget(offset));
    throw;
  }
  return base_ + offset;
}

void Arena::deallocate(void* pointer) noexcept {
  if (pointer == nullptr || getpid() != owner_) return;
  const std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - base_);
  give_back(offset, forget(offset));
}

void Arena::back(const void* pointer, std::size_t bytes) {
  refuse_in_forked_child();
  const auto around = allocation_of(pointer);
  const auto* const begin = static_cast<const std::byte*>(pointer);
  if (!around || bytes > static_cast<std::size_t>(around->begin + around->bytes - begin))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} to be backed do not lie in one allocation of the shared arena",
                            format_size(bytes)));
  back_pages(file_.get(), static_cast<std::size_t>(begin - base_), bytes);
  map_pages(begin, bytes);
}

bool Arena::contains(const void* pointer, std::size_t bytes) const noexcept {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(base_);
  return offset < size_ && bytes <= size_ - offset;
}

std::optional<Arena::Allocation> Arena::allocation_of(const void* pointer) const {
  if (!contains(pointer, 1)) return std::nullopt;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  const std::lock_guard lock(mutex_);
  auto after = live_.upper_bound(offset);
  if (after == live_.begin()) return std::nullopt;
  const auto [begin, bytes] = *--after;
  if (offset - begin >= bytes) return std::nullopt;
  return Allocation{base_ + begin, bytes};
}

void Arena::refuse_in_forked_child() const {
  if (getpid() != owner_)
    throw Error(ErrorCode::unsupported,
                "this process was forked from one that already used Treering's shared memory, "
                "which a child must "
                "not share; fork before the first use of Treering, or start processes afresh "
                "(spawn, exec)");
}

/// First fit.
std::size_t Arena::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t colour = next_colour();
  const std::size_t length = bytes < size_ ? page_ceiling(colour + bytes) : size_;
  std::size_t free = 0, largest = 0;
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const auto [first, room] = *hole;
    free += room;
    largest = std::max(largest, room);
    if (room < length) continue;
    live_.emplace(first + colour, bytes);
    if (room > length) holes_.emplace_hint(hole, first + length, room - length);
    holes_.erase(hole);
    return first + colour;
  }
  throw Error(
      ErrorCode::out_of_memory,
      fmt::format(
          "the shared arena has no room for {}: {} of its {} are free, at most {} in one piece; "
          "set TREERING_ARENA to more",
          format_size(bytes), format_size(free), format_size(size_), format_size(largest)));
}

/// The allocation is live no longer. Returns its bytes.
std::size_t Arena::forget(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(offset);
  assert(found != live_.end() && "deallocate() of what is no allocation of this arena");
  const std::size_t bytes = found->second;
  live_.erase(found);
  return bytes;
}

void Arena::give_back(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t first = page_floor(offset), length = page_ceiling(offset + bytes) - first;
  const int rc = fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           static_cast<off_t>(first), static_cast<off_t>(length));
  assert(rc == 0 && "cannot give shared memory back");
  static_cast<void>(rc);
  const std::lock_guard lock(mutex_);
  add_hole(first, length);
}

/// Neighbouring holes become one.
void Arena::add_hole(std::size_t first, std::size_t length) {
  auto after = holes_.lower_bound(first);
  if (after != holes_.end() && after->first == first + length) {
    length += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += length;
      return;
    }
  }
  holes_.emplace_hint(after, first, length);
}

/// Where in its first page an allocation begins. Steps of 7 keep near neighbours apart by 512 bytes
/// and more.
std::size_t Arena::next_colour() {
  constexpr unsigned colours = page_bytes / alignment, step = 7;
  colour_ = (colour_ + step) % colours;
  return colour_ * alignment;
}

Arena& process_arena(std::size_t bytes) {
  // Never destroyed: threads may still use it while the process ends.
  static Arena& arena = *new Arena(bytes != 0 ? bytes : default_arena_size());
  return arena;
}

std::size_t default_arena_size() {
  constexpr std::size_t least = std::size_t{64} << 30, most = std::size_t{256} << 30;
  const std::size_t memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                             static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(std::clamp(2 * memory, least, most), page_floor(file_size_limit()));
}

}  // namespace treering
