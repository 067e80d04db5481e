// The program `treering-gpu-check`, and the processes of its probes.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "perf/gpu_check/child.hpp"
#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/runner.hpp"
#include "perf/gpu_check/second.hpp"
#include "treering/error.hpp"

namespace treering::gpu_check {
namespace {

bool on_host() { return usable_gpus() == 0; }

template <class Named>
const Named& find(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  if (found == all.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("There is no '{}'.", name));
  return *found;
}

/// Ends with its parent, whatever happens to that.
void follow(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (kill(parent, 0) != 0) _exit(1);  // it was gone before the line above
}

/// The life of a probe's process. Ends at once: a stuck kernel would hold up an orderly end.
[[noreturn]] void run_probe(const Options& options) {
  follow(options.parent);
  fcntl(findings_descriptor, F_SETFD, FD_CLOEXEC);
  Findings findings(findings_descriptor);
  try {
    const Probe machine = machine_probe();
    const bool is_machine = options.probe == machine.name;
    (is_machine ? machine : find(all_probes(on_host()), options.probe)).run(findings);
  } catch (const std::exception& error) {
    findings.fail(error.what());
  }
  findings.done();
  std::fflush(nullptr);
  _exit(0);
}

[[noreturn]] void run_helper(const Options& options) {
  follow(options.parent);
  std::vector<Helper> all = on_host() ? process_helpers(OnHost{}) : process_helpers(OnGpu{});
  for (Helper& helper : rank_helpers()) all.push_back(std::move(helper));
  int status = 0;
  try {
    find(all, options.helper).run(helper_descriptor);
  } catch (const std::exception& error) {
    fmt::print(stderr, "helper {}: {}\n", options.helper, error.what());
    status = 1;
  }
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace
}  // namespace treering::gpu_check

int main(int argc, char** argv) try {
  using namespace treering::gpu_check;
  CLI::App app{"What a GPU does, and whether Treering is right on it. docs/gpu-check.md explains."};
  app.name("treering-gpu-check");
  app.set_version_flag("--version", TREERING_VERSION);
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!options.probe.empty()) run_probe(options);
  if (!options.helper.empty()) run_helper(options);
  if (options.list) {
    list(on_host());
    return 0;
  }
  return run(options, TREERING_VERSION);
} catch (const treering::Error& error) {
  fmt::print(stderr, "treering-gpu-check: {}\n", error.what());
  return error.code() == treering::ErrorCode::invalid_argument ? 2 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "treering-gpu-check: {}\n", error.what());
  return 1;
}
