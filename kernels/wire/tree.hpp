#pragma once

// A block's place in one of the two trees (plan/trees.hpp). Each step is one message of one chunk:
//
//     reduce      children ──►( + own input )──► parent; at the root: ──► own output
//     broadcast   parent   ──► own output ──► children;  at the root: own input ──►

#include "kernels/wire/wire.hpp"
#include "plan/trees.hpp"

namespace treering {

template <class Call>
class TreeWire {
 public:
  TREERING_DEVICE TreeWire(Call& call, int tree)
      : call_(call), place_(tree_place(call.rank(), call.size(), call.root(), tree)) {}

  TREERING_DEVICE void reduce(Chunk chunk) {
    const std::size_t bytes = call_.bytes(chunk);
    const int children = this->children();
    for (int i = 0; i < children; ++i) child(i).await_post();
    if (!is_root()) parent().await_credit();
    if (!call_.agree()) return;
    call_.fold(
        1 + children,
        [&](int i) { return i == 0 ? call_.input(chunk.begin) : child(i - 1).incoming(bytes); },  //
        1, [&](int) { return is_root() ? call_.output(chunk.begin) : parent().outgoing(bytes); },
        chunk.count, {.own = 0, .last = is_root()});
    call_.complete();
    for (int i = 0; i < children; ++i) child(i).release();
    if (!is_root()) parent().post(bytes);
  }

  /// The root sends its input.
  TREERING_DEVICE void broadcast(Chunk chunk) {
    pass_down([&] { return call_.input(chunk.begin); }, chunk);
  }
  /// The root sends its output, where the result of a reduction is.
  TREERING_DEVICE void broadcast_result(Chunk chunk) {
    pass_down([&] { return call_.output(chunk.begin); }, chunk);
  }

 private:
  template <class Source>
  TREERING_DEVICE void pass_down(Source source, Chunk chunk) {
    const std::size_t bytes = call_.bytes(chunk);
    const int children = this->children();
    if (!is_root()) parent().await_post();
    for (int i = 0; i < children; ++i) child(i).await_credit();
    if (!call_.agree()) return;
    call_.fold(
        1, [&](int) { return is_root() ? source() : parent().incoming(bytes); },  //
        1 + children,
        [&](int i) { return i == 0 ? call_.output(chunk.begin) : child(i - 1).outgoing(bytes); },
        chunk.count);
    call_.complete();
    if (!is_root()) parent().release();
    for (int i = 0; i < children; ++i) child(i).post(bytes);
  }

  TREERING_DEVICE bool is_root() const { return place_.parent < 0; }
  TREERING_DEVICE int children() const {
    return (place_.first_child >= 0 ? 1 : 0) + (place_.second_child >= 0 ? 1 : 0);
  }
  TREERING_DEVICE Wire<Call> parent() const { return Wire<Call>(call_, place_.parent); }
  TREERING_DEVICE Wire<Call> child(int i) const {
    const bool first = i == 0 && place_.first_child >= 0;
    return Wire<Call>(call_, first ? place_.first_child : place_.second_child);
  }

  Call& call_;
  TreePlace place_;
};

}  // namespace treering
