// The tests' main(), and that of the rank processes that they start.

#include <gmock/gmock.h>

#include <csignal>

#include "tests/ranks/fake_peer.hpp"
#include "tests/ranks/processes.hpp"

int main(int argc, char** argv) {
  int status = 0;
  if (treering::test::run_as_rank(argc, argv, status)) return status;
  if (treering::test::run_as_fake_peer(argc, argv, status)) return status;
  std::signal(SIGPIPE, SIG_IGN);  // ranks that are killed do not listen
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
