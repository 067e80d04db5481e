#pragma once

// The libraries that Treering is compared with. Each that was found when this program was built is an
// executable file, called with the number of ranks and the address where they find the command.

#include <string>
#include <vector>

namespace treering::perf {

/// "openmpi,gloo" or "all": the names. Throws Error{invalid_argument} that lists those there are.
std::vector<std::string> parse_peers(const std::string& text);

/// The folder `peers` beside this program.
std::string usual_peers_folder();

/// The file that starts the ranks of a peer; empty if it is not in the folder.
std::string launcher_of(const std::string& peer, const std::string& folder);

/// Why a peer has no launcher, and what to do.
std::string why_missing(const std::string& peer);

}  // namespace treering::perf
