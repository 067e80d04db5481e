#include "treering/error.hpp"

namespace treering {

const char* name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::invalid_setting:
      return "invalid_setting";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::peer_lost:
      return "peer_lost";
    case ErrorCode::aborted:
      return "aborted";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::system:
      return "system";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::stuck:
      return "stuck";
  }
  return "unknown";
}

}  // namespace treering
