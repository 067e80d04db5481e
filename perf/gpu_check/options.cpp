#include "perf/gpu_check/options.hpp"

#include <CLI/CLI.hpp>

namespace treering::gpu_check {

void declare(CLI::App& app, Options& o) {
  app.footer(
      "The exit status is 0 if nothing failed or hung, 1 if something did, 2 if the command line\n"
      "was not understood. Without a GPU, or with TREERING_DEVICE=host, the host takes its place.");
  app.add_flag("--quick", o.quick, "leave out what takes long");
  app.add_option("--only", o.only, "ask only what has this name, or begins with it")
      ->type_name("NAME");
  app.add_flag("--list", o.list, "names and questions; asks nothing");
  app.add_option("--output", o.output, "folder for the results (gpu-check-results)")
      ->type_name("FOLDER");
  app.add_option("--deadline", o.deadline, "seconds for everything (360)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  const std::string hidden;
  app.add_option("--probe", o.probe)->group(hidden);
  app.add_option("--helper", o.helper)->group(hidden);
  app.add_option("--parent", o.parent)->group(hidden);
}

}  // namespace treering::gpu_check
