#pragma once

#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "tests/ranks/outcome.hpp"

namespace treering::test {

/// Runs body(0) … body(n-1) on n threads at once and returns how each ended. Rethrows what is no
/// treering::Error when all have ended.
template <class Body>
std::vector<Outcome> on_threads(int n, Body body) {
  std::vector<std::future<Outcome>> threads;
  for (int i = 0; i < n; ++i)
    threads.push_back(
        std::async(std::launch::async, [&body, i] { return outcome_of([&] { body(i); }); }));
  for (auto& thread : threads) thread.wait();
  std::vector<Outcome> outcomes;
  for (auto& thread : threads) outcomes.push_back(thread.get());
  return outcomes;
}

}  // namespace treering::test
