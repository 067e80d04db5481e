#include "transport/mapped/peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/system_error.hpp"
#include "base/units.hpp"
#include "kernels/exec/host/arena.hpp"

namespace treering {
namespace {

/// A file of that size which nobody can cut short.
void verify_file(int file, std::size_t size) {
  struct stat status {};
  if (fstat(file, &status) != 0) throw system_error("look at a peer's arena (fstat)");
  const int seals = fcntl(file, F_GET_SEALS);
  if (static_cast<std::size_t>(status.st_size) != size || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw Error(
        ErrorCode::system,
        fmt::format("what a peer passed as its arena of {} is none: {}, {}sealed",
                    format_size(size), format_size(static_cast<std::size_t>(status.st_size)),
                    seals < 0 ? "not " : ""));
}

std::byte* map(int file, std::size_t size) {
  void* const base =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base == MAP_FAILED)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format(
            "{}; set TREERING_ARENA to less on all ranks, or raise the limit on address space "
            "(ulimit -v)",
            system_error("map a peer's arena of " + format_size(size)).what()));
  madvise(base, size, MADV_DONTFORK);
  madvise(base, size, MADV_DONTDUMP);
  return static_cast<std::byte*>(base);
}

}  // namespace

PeerMemory::PeerMemory(UniqueFd file, std::size_t size)
    : file_(std::move(file)),
      descriptor_(file_.get()),
      size_(size),
      base_((verify_file(descriptor_, size), map(descriptor_, size))),
      mapper_(getpid()) {
  const auto& header = *reinterpret_cast<const ArenaHeader*>(base_);
  if (header.magic == arena_magic && header.size == size) return;
  munmap(base_, size_);
  throw Error(ErrorCode::system,
              "what a peer passed as its arena does not begin like one; do all ranks run "
              "the same version of Treering?");
}

PeerMemory::PeerMemory()
    : descriptor_(process_arena().descriptor()),
      size_(process_arena().size()),
      base_(process_arena().base()) {}

PeerMemory::~PeerMemory() {
  // A forked child has not inherited the mapping, and something else may lie there.
  if (mapper_ == getpid()) munmap(base_, size_);
}

void PeerMemory::back(std::size_t offset, std::size_t bytes) {
  if (offset > size_ || bytes > size_ - offset)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} at offset {} do not lie in a peer's arena of {}",
                            format_size(bytes), offset, format_size(size_)));
  back_pages(descriptor_, offset, bytes);
  map_pages(base_ + offset, bytes);
}

std::shared_ptr<PeerMemory> attach(const ProcessIdentity& owner, UniqueFd arena, std::size_t size) {
  static std::mutex mutex;
  static std::map<ProcessIdentity, std::weak_ptr<PeerMemory>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PeerMemory>& entry = known[owner];
  std::shared_ptr<PeerMemory> memory = entry.lock();
  if (memory == nullptr) {
    memory = same_process(owner, this_process())
                 ? std::make_shared<PeerMemory>()
                 : std::make_shared<PeerMemory>(std::move(arena), size);
    entry = memory;
  }
  return memory;
}

}  // namespace treering
