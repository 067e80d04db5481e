#pragma once

// Where ranks find the command: a unix socket in the abstract name space, which leaves no file.

#include <string>

#include "base/unique_fd.hpp"

namespace treering::perf {

/// A listening socket, and its address: a word that no other process has.
struct Meeting {
  UniqueFd socket;
  std::string address;
};

/// Throws Error{system}.
Meeting open_meeting();
/// Throws Error{system}, for example if the command is gone.
UniqueFd connect_to(const std::string& address);

}  // namespace treering::perf
