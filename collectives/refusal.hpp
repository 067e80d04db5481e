#pragma once

// A call that is refused, in words that begin with its name and its rank.

#include <fmt/format.h>

#include <string_view>

#include "treering/error.hpp"

namespace treering {

inline Error refusal(std::string_view call, int rank, std::string_view why,
                     ErrorCode code = ErrorCode::invalid_argument) {
  return {code, fmt::format("{} on rank {}: {}", call, rank, why), {rank}};
}

/// What `step` returns; an Error of it, which does not know the call, becomes the call's refusal.
template <class Step>
auto refusing(const char* call, int rank, Step step) {
  try {
    return step();
  } catch (const Error& error) {
    throw refusal(call, rank, error.what(), error.code());
  }
}

}  // namespace treering
