#pragma once

// The ranks of one contender, seen from the command. Each is a process that obeys orders and sleeps
// between them (perf/peers/protocol.hpp).
//
//     command ─ spawn ─► launcher (an mpiexec, a script …) ─► rank 0, rank 1, …
//        ▲                                                       │
//        └───────────── one socket each, and one pidfd ──────────┘
//
// Whatever happens, destruction leaves no process behind.

#include <chrono>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "perf/bench/control.hpp"
#include "perf/peers/address.hpp"
#include "perf/peers/protocol.hpp"

namespace treering::perf {

/// A contender that is silent for longer is given up.
inline constexpr std::chrono::milliseconds usual_patience{20'000};

class Contender {
 public:
  /// Nothing is started yet. Throws Error{system}.
  Contender(std::string name, int ranks, std::chrono::milliseconds patience = usual_patience);
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  /// Asks the ranks to end, and ends those that do not.
  ~Contender();

  const std::string& name() const noexcept { return name_; }
  /// Where ranks connect.
  const std::string& address() const noexcept { return meeting_.address; }

  /// Runs a command, words separated, which starts one rank or more.
  void launch(std::vector<std::string> words);
  /// Waits until all ranks are ready. Throws Error that names the contender: it was silent, a rank
  /// or the launcher ended, a rank failed or talked nonsense. Such a contender is ended at once.
  void meet(bool pin);
  /// Gives all ranks one order and waits for their answers, those of rank 0 first. Throws as meet().
  std::vector<Answer> ask(const Order&);

  /// What rank 0 said of its library.
  const std::string& version() const noexcept { return version_; }
  /// The processes of the ranks, by rank; and all that the command started itself.
  std::vector<int> processes() const;

 private:
  struct Member {
    UniqueFd socket, process;  // a pidfd
    int pid = -1;
  };

  void accept_one();
  void admit(std::size_t which, bool pin);
  Answer hear(Member&);
  void await_one();
  [[noreturn]] void give_up(const std::string& what);
  std::string last_words() const;
  void end(std::chrono::milliseconds grace) noexcept;

  std::string name_;
  int ranks_;
  std::chrono::milliseconds patience_;
  Meeting meeting_;
  Control control_;
  UniqueFd output_;  // what launcher and ranks print
  std::vector<Member> launchers_, strangers_, members_;
  std::string version_;
};

}  // namespace treering::perf
