#pragma once

// A message of fixed size with a file descriptor beside it, over a unix socket that blocks.

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace treering {

/// Sends the bytes, and the descriptor unless it is -1; the caller keeps it. False, with errno, if
/// it cannot be done.
inline bool send_message(int socket, const void* bytes, std::size_t size, int descriptor = -1) {
  iovec piece{const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

/// Waits for at most `size` bytes and returns their number: 0 at the end, -1 and errno on an error or
/// if the message was longer. `descriptor` becomes the one that came with them, which the caller
/// owns, or -1.
inline ssize_t receive_message(int socket, void* bytes, std::size_t size, int& descriptor) {
  iovec piece{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  descriptor = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  if (got < 0 || (message.msg_flags & MSG_TRUNC) == 0) return got;
  errno = EMSGSIZE;
  return -1;
}

}  // namespace treering
