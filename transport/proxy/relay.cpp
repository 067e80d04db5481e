#include "transport/proxy/relay.hpp"

#include <chrono>

#include "kernels/exec/atomics.hpp"

namespace treering {

Relay::~Relay() {
  leave_ = true;
  if (thread_.joinable()) thread_.join();
}

void Relay::reroute(Edge& sender, Edge& receiver, WireShape shape) {
  Link& link = links_.emplace_back();
  link.shape = shape;
  link.staged_posts.resize(shape.slots);
  link.staged_slots = std::make_unique<std::byte[]>(std::size_t{shape.slots} * shape.slot_bytes);
  link.target = sender.to;
  sender.to.slots = link.staged_slots.get();
  sender.to.posts = link.staged_posts.data();
  receiver.from.credit = &link.staged_credit;
}

void Relay::start() {
  thread_ = std::thread([this] { loop(); });
}

void Relay::loop() {
  using namespace std::chrono_literals;
  for (int idle = 0; !leave_; ++idle) {
    for (Link& link : links_)
      if (carry(link)) idle = 0;
    if (idle > 1000)
      std::this_thread::sleep_for(50us);
    else if (idle > 100)
      std::this_thread::yield();
  }
}

/// Carries at most one message and one credit; true if it did.
bool Relay::carry(Link& link) {
  bool carried = false;
  const std::size_t slot = link.posted % link.shape.slots;
  const Post& post = link.staged_posts[slot];
  if (load_acquire(post.step) > link.posted) {
    Post& remote = link.target.posts[slot];
    const std::size_t offset = slot * link.shape.slot_bytes;
    // An offer, or a reference, counts the bytes of a whole part, which lie elsewhere.
    if (post.bytes > inline_bytes)
      put_.put(link.target.slots + offset, link.staged_slots.get() + offset,
               std::min<std::size_t>(post.bytes, link.shape.slot_bytes));
    constexpr std::size_t flag = sizeof(post.step);
    put_.put(reinterpret_cast<std::byte*>(&remote) + flag,
             reinterpret_cast<const std::byte*>(&post) + flag, sizeof(Post) - flag);
    put_.signal(remote.step, ++link.posted);
    carried = true;
  }
  const std::uint64_t credit = load_acquire(link.staged_credit.value);
  if (credit > link.credited) {
    put_.signal(link.target.credit->value, credit);
    link.credited = credit;
    carried = true;
  }
  return carried;
}

}  // namespace treering
