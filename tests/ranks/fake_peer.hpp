#pragma once

// A peer for --versus that is no library: it behaves as it is told, so that what the command does
// with a bad one can be seen. It is this test program, started with words of its own.

#include <string>
#include <vector>

namespace treering::test {

/// The words that start a rank. `behaviour`: good, slow, wrong, cannot; silent, stuck, dies, fails,
/// short_answer, other_magic, impostor, absent, quits.
std::vector<std::string> fake_peer(const std::string& behaviour, const std::string& address,
                                   int rank);

/// If this process was started as a fake peer, lives as one and returns true, with the exit status.
bool run_as_fake_peer(int argc, char** argv, int& status);

}  // namespace treering::test
