#include "perf/versus/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "treering/error.hpp"

namespace treering::perf {
namespace {

const std::vector<std::string> names{"openmpi", "mpich", "intelmpi", "oneccl", "gloo", "nccl"};

}  // namespace

std::vector<std::string> parse_peers(const std::string& text) {
  if (text == "all") return names;
  std::vector<std::string> peers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::find(names.begin(), names.end(), word) == names.end())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--versus does not know '{}'; there are: {}. Or all.", word,
                              fmt::join(names, ", ")));
    if (std::find(peers.begin(), peers.end(), word) == peers.end()) peers.push_back(word);
  }
  return peers;
}

std::string usual_peers_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peers";
}

std::string launcher_of(const std::string& peer, const std::string& folder) {
  const std::string file = std::filesystem::path(folder) / peer;
  return access(file.c_str(), X_OK) == 0 ? file : "";
}

std::string why_missing(const std::string& peer) {
  if (peer == "nccl") return "works on GPUs only, and --versus compares CPU processes so far";
  return "was not found when this program was built; run ./dev setup --peers, then ./dev build";
}

}  // namespace treering::perf
