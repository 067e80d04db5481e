#pragma once

// A probe: one question to the machine. It runs in a process of its own, which is killed at its
// deadline, so a probe that hangs or crashes is an answer like any other.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace treering::gpu_check {

/// What a probe has found out: written to a pipe line by line, as it comes, so that nothing is lost
/// when the probe's process ends before its time. Names are unique within a probe.
class Findings {
 public:
  explicit Findings(int descriptor) : descriptor_(descriptor) {}

  /// The unit is the last part of the name: hop_ns, copy_gbps.
  void number(std::string_view name, double value) const;
  void text(std::string_view name, std::string_view value) const;
  void flag(std::string_view name, bool value) const;
  /// Something is wrong. The probe may go on; the first reason counts.
  void fail(std::string_view reason) const;
  /// There is nothing to find out here.
  void skip(std::string_view reason) const;
  /// The probe has come to its end: without this line its process has crashed.
  void done() const;

 private:
  void write(const std::string& line) const;
  int descriptor_;
};

struct Probe {
  std::string name;      ///< group.question
  std::string question;  ///< for people: what the answer tells
  int seconds;           ///< deadline
  std::function<void(Findings&)> run;
  std::vector<std::string> environment = {};  ///< NAME=value, set before CUDA starts
  std::string tool = {};                      ///< of compute-sanitizer; empty: runs by itself
  bool each_gpu = false;                      ///< asked of every GPU, not only the first
  bool quick = true;                          ///< also asked with --quick
};
using Probes = std::vector<Probe>;

/// A second process that a probe starts: by name, with a socket to it.
struct Helper {
  std::string name;
  std::function<void(int socket)> run;
};

// The probes of raw CUDA, and the same source for the host in place of a GPU (rig.hpp).
struct OnGpu {};
struct OnHost {};
/// GPUs that this process can use; 0 without a driver. Starts CUDA.
int machines(OnGpu);
int machines(OnHost);
/// From now on the calling thread, and Treering if it has not started yet, use that one.
void use_gpu(int number);
/// GPUs to be used: 0 without one, and if TREERING_DEVICE asks for the host. Throws
/// Error{unsupported} if it asks for a GPU in vain.
int usable_gpus();
Probes facts_probes(OnGpu);
Probes facts_probes(OnHost);
Probes copy_probes(OnGpu);
Probes copy_probes(OnHost);
Probes residency_probes(OnGpu);
Probes residency_probes(OnHost);
Probes spinning_probes(OnGpu);
Probes spinning_probes(OnHost);
Probes hop_probes(OnGpu);
Probes hop_probes(OnHost);
Probes litmus_probes(OnGpu);
Probes litmus_probes(OnHost);
Probes process_probes(OnGpu);
Probes process_probes(OnHost);
Probes stuck_probes(OnGpu);
Probes stuck_probes(OnHost);
Probes queue_probes(OnGpu);
Probes queue_probes(OnHost);
std::vector<Helper> process_helpers(OnGpu);
std::vector<Helper> process_helpers(OnHost);

}  // namespace treering::gpu_check
