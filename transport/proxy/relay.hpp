#pragma once

// The proxy: a thread that carries wires whose ends cannot reach each other's memory.
//
//     sender's staging                           receiver's inbox
//     slots, posts  ──── put, then signal ────►  slots, posts
//     credit        ◄─────────── signal ───────  staged credit
//
// The kernels at both ends cannot tell, and need not: the post is the doorbell. There is no other
// queue: while the receiver gives no credit the sender posts nothing, which is all the
// back-pressure there is.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/wire/post.hpp"
#include "transport/put.hpp"

namespace treering {

class Relay {
 public:
  /// `put` carries the data and outlives the relay.
  explicit Relay(Put& put) : put_(put) {}
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  /// Stops carrying. To be destroyed before the memory at both ends of its wires is. Kernels that still use the wires wait until they are aborted.
  ~Relay();

  /// Reroutes the wire from the rank that has `sender` to the rank that has `receiver` through this
  /// relay: both edges then point to staging areas of their own side. Before start(), while no
  /// kernel uses the wire.
  void reroute(Edge& sender, Edge& receiver, WireShape shape);

  /// Starts the thread.
  void start();

 private:
  struct Link {
    WireShape shape;
    std::vector<Post> staged_posts;
    std::unique_ptr<std::byte[]> staged_slots;
    Flag staged_credit{};
    SendEnd target;              ///< the receiver's inbox, and the sender's credit
    std::uint64_t posted = 0;    ///< messages carried
    std::uint64_t credited = 0;  ///< credits carried
  };

  void loop();
  bool carry(Link& link);

  Put& put_;
  std::deque<Link> links_;  // a deque: kernels hold addresses into links
  std::atomic<bool> leave_ = false;
  std::thread thread_;
};

}  // namespace treering
