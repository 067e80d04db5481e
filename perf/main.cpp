// The command `treering`. Each subcommand declares its options and has a function that runs it.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "perf/bench/command.hpp"
#include "perf/tune/command.hpp"
#include "treering/error.hpp"

namespace {

/// 2 for a command line or an environment that is not understood, 1 for everything that fails later.
int status_of(const treering::Error& error) {
  using treering::ErrorCode;
  return error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::invalid_setting
             ? 2
             : 1;
}

/// Results that nobody got are a failure.
int after_flush(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "treering: The results cannot be written to standard output: {}.\n",
             std::strerror(errno));
  return 1;
}

/// A standard stream that is closed must not become some other file, which printing would change.
void open_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

}  // namespace

int main(int argc, char** argv) try {
  open_standard_streams();
  CLI::App app{"Treering: collective communication among ranks, on GPUs or CPUs."};
  app.name("treering");
  app.set_version_flag("--version", TREERING_VERSION);
  app.require_subcommand(1);

  treering::perf::Arguments perf_arguments;
  CLI::App* perf =
      app.add_subcommand("perf", "Time collectives among ranks of this machine, and check them.");
  treering::perf::declare(*perf, perf_arguments);
  treering::perf::TuneArguments tune_arguments;
  CLI::App* tune =
      app.add_subcommand("tune", "Measure by what Treering chooses algorithms on this machine.");
  treering::perf::declare(*tune, tune_arguments);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return after_flush(tune->parsed() ? treering::perf::run(tune_arguments, argv[0])
                                    : treering::perf::run(perf_arguments, {argv, argv + argc}));
} catch (const treering::Error& error) {
  fmt::print(stderr, "treering: {}\n", error.what());
  return status_of(error);
} catch (const std::exception& error) {
  fmt::print(stderr, "treering: {}\n", error.what());
  return 1;
}
