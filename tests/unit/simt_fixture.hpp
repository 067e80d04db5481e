#pragma once

// What the tests of the `simt` execution share.

#include <gmock/gmock.h>

#include "kernels/exec/simt/mutants.hpp"
#include "kernels/exec/simt/queue.hpp"
#include "treering/error.hpp"

namespace treering {

class Simt : public ::testing::Test {
 protected:
  void SetUp() override { simt::configure({}); }
  void TearDown() override {
    simt::mutants::heal();
    simt::configure({});
  }
};

/// The leader waits for a flag, as the kernels do.
inline void await(SimtGroup& group, Site site, int peer, const std::uint64_t& flag,
                  std::uint64_t value) {
  if (!group.is_leader()) return;
  for (std::uint32_t turn = 0; load_relaxed(flag) < value; ++turn) group.pause(site, peer, turn);
  group.acquire(site, flag);
}

/// What a call throws.
template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::system, "no error");
}

}  // namespace treering
