#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace treering {

/// Runs of memory that do not overlap. Thread-safe.
class MemoryRuns {
 public:
  void add(const void* begin, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    runs_[static_cast<const std::byte*>(begin)] = bytes;
  }
  /// The run that begins there, if there is one.
  void remove(const void* begin) {
    const std::unique_lock lock(mutex_);
    runs_.erase(static_cast<const std::byte*>(begin));
  }
  /// Whether these bytes lie inside one run.
  bool hold(const void* memory, std::size_t bytes) const {
    const auto* begin = static_cast<const std::byte*>(memory);
    const std::shared_lock lock(mutex_);
    const auto after = runs_.upper_bound(begin);
    if (after == runs_.begin()) return false;
    const auto& [start, length] = *std::prev(after);
    return begin + bytes <= start + length;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, std::size_t> runs_;
};

}  // namespace treering
