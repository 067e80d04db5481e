#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace treering::gpu_check {

/// The command line.
struct Options {
  bool quick = false, list = false;
  std::vector<std::string> only;  ///< names, or beginnings of names
  std::string output = "gpu-check-results";
  int deadline = 360;  ///< seconds for everything

  // Of the processes that the program starts.
  std::string probe, helper;
  int parent = 0;
};

void declare(CLI::App&, Options&);

}  // namespace treering::gpu_check
