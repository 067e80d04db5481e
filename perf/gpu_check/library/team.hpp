#pragma once

// Ranks of one process on one device, and checked calls on them.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "perf/bench/memory.hpp"
#include "perf/patterns.hpp"
#include "treering/treering.hpp"

namespace treering::gpu_check {

/// "all_reduce.ring"
std::string name(const Kernel&);

/// One call, and where its buffers lie.
struct Case {
  std::optional<Kernel> kernel;  ///< none: Treering's choice
  Pattern pattern;
  bool in_place = false, registered = true;
  std::size_t shift = 0;  ///< bytes by which buffers begin off their alignment

  std::string text() const;
};

/// A rank's buffers, made before any call: allocating may wait for running kernels.
class RankMemory {
 public:
  explicit RankMemory(std::size_t bytes);

  /// Fills the input, poisons the output, surrounds both with guards.
  void prepare(const Case&, int rank);
  /// The call that was prepared.
  void call(Communicator&, const CallOptions&) const;
  /// What is wrong afterwards; empty if nothing is.
  std::string faults(int rank) const;

 private:
  perf::Memory registered_[2], plain_[2];
  Case case_{};
  perf::Region input_, output_;
  std::size_t input_offset_ = 0, output_offset_ = 0;
};

/// How the ranks' kernels are launched.
enum class Launching {
  together,  ///< one thread, one LaunchGroup: one cooperative grid on a GPU
  threads    ///< every rank by a thread of its own
};

class Team {
 public:
  Team(int size, std::size_t bytes);

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::vector<Stream>& streams() { return streams_; }

  void prepare(const Case&);
  /// The prepared call on all ranks' streams; returns when it is launched.
  void launch();
  void synchronize();
  /// What is wrong after the call; empty if nothing is.
  std::string faults() const;

  /// prepare, call, faults.
  std::string check(const Case&, Launching = Launching::together);

 private:
  void call_by_threads();

  std::vector<Communicator> ranks_;
  std::vector<Stream> streams_;
  std::deque<RankMemory> memory_;
};

}  // namespace treering::gpu_check
