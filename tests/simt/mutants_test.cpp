// The tests are not blind: each barrier and acquire that is left out and each release that is
// weakened makes one fail. Every mutant runs in a child process, since ThreadSanitizer's report ends it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "kernels/exec/simt/mutants.hpp"
#include "tests/simt/scenario.hpp"

namespace treering::test {
namespace {

using simt::mutants::BarrierSite;

/// Runs one test of this program with a fault planted (see main.cpp); true if the child failed.
bool found(const std::string& fault) {
  const std::string plant = "TREERING_TEST_FAULT=" + fault;
  std::vector<char*> environment{const_cast<char*>(plant.c_str())};
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=Broken.EveryKernel";
  char* arguments[] = {program.data(), filter.data(), nullptr};

  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", 1, 0);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &quiet, nullptr, arguments, environment.data()),
            0);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status != 0;
}

/// What the children run.
TEST(Broken, EveryKernel) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const int size : {1, 2, 3, 4}) run_every_kernel(size, 5, seed, all_malice(size));
    if (HasFailure()) return;
  }
}

TEST(Mutants, NoneIsFoundWithoutFault) { EXPECT_FALSE(found("none")); }

/// Elements whose flags come before their data give wrong values, whoever looks.
TEST(Mutants, TornElementsAreFound) { EXPECT_TRUE(found("weak:element")); }

/// Everywhere, since loads are stale in the simulated GPU.
TEST(Mutants, MissingOrderOfPostsIsFound) {
  for (const char* fault : {"weak:post", "no acquire:post"}) EXPECT_TRUE(found(fault)) << fault;
}

/// A credit orders loads before later stores: only ThreadSanitizer tells if it does not.
#ifdef __SANITIZE_THREAD__
TEST(Mutants, MissingOrderIsFound) {
  for (int i = 0; i < sites; ++i)
    for (const std::string fault : {"weak", "no acquire"}) {
      const auto site = static_cast<Site>(i);
      if (fault == "no acquire" && site == Site::element) continue;  // there is none
      const std::string planted = fmt::format("{}:{}", fault, name(static_cast<Site>(i)));
      EXPECT_TRUE(found(planted)) << planted;
    }
}

TEST(Mutants, EveryBarrierIsMissed) {
  simt::mutants::watch_barriers();
  for (const int size : {1, 2, 3}) run_every_kernel(size, 5, 1);
  const std::vector<BarrierSite> sites = simt::mutants::barrier_sites();
  simt::mutants::heal();
  EXPECT_GE(sites.size(), 3u);
  for (const BarrierSite& site : sites)
    EXPECT_TRUE(found(fmt::format("skip:{}:{}", site.file, site.line)))
        << site.file << ":" << site.line;
}
#endif

}  // namespace
}  // namespace treering::test
