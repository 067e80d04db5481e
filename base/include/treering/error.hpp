#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "treering/export.hpp"

namespace TREERING_API treering {

/// What kind of thing went wrong; stable, so that programs may branch on it.
enum class ErrorCode {
  invalid_argument,  ///< an argument of this call is wrong; nothing was sent, the communicator stays usable
  invalid_setting,  ///< an environment variable has a value that is not understood
  mismatch,         ///< ranks called different things, or the same with different arguments
  peer_lost,        ///< a peer's process ended, or it left the communicator
  aborted,          ///< somebody called abort()
  timeout,          ///< a peer did not show up in time
  out_of_memory,    ///< host, device or shared memory is exhausted
  system,           ///< the operating system or a driver refused something
  unsupported,      ///< understood, but not to be had here
  stuck,            ///< a kernel can never complete (found by the `simt` execution)
};

/// The name of an error code, as it stands in the enumeration.
const char* name(ErrorCode code) noexcept;

/// The one exception that Treering throws. `what()` is a whole sentence or more: what was wrong, at
/// which rank, and what to do about it.
class Error : public std::runtime_error {
 public:
  /// `ranks`: the ranks that caused it, empty where that means nothing.
  Error(ErrorCode code, const std::string& message, std::vector<int> ranks = {})
      : std::runtime_error(message), code_(code), ranks_(std::move(ranks)) {}

  ErrorCode code() const noexcept { return code_; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  ErrorCode code_;
  std::vector<int> ranks_;
};

}  // namespace treering
