#pragma once

// A second process, for what a probe wants to know of two: this program again, with a socket to it.

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace treering::gpu_check {

/// The socket's descriptor in the second process.
inline constexpr int helper_descriptor = 4;

/// Starts a program in this process's group, with `socket` (if not -1) as its helper_descriptor.
pid_t start(std::vector<std::string> words, int socket = -1);

class Second {
 public:
  /// Runs the helper of that name.
  explicit Second(const std::string& helper);
  Second(const Second&) = delete;
  Second& operator=(const Second&) = delete;
  ~Second() { kill(); }

  int socket() const { return socket_.get(); }
  void kill();

 private:
  UniqueFd socket_;
  pid_t process_ = -1;
};

/// One message of fixed size, perhaps with a descriptor. receive() returns that, or -1; it throws
/// Error{timeout} after ten seconds, and Error{peer_lost} if the other process has ended.
void send(int socket, const void* bytes, std::size_t size, int descriptor = -1);
int receive(int socket, void* bytes, std::size_t size);

}  // namespace treering::gpu_check
