#pragma once

// A block's place in a ring: it receives from the previous rank and sends to the next. Each step is
// one message of one chunk; its name says where the data goes:
//
//     prev ──recv──►( + own input )──copy──► own output
//                        └─────────send─────────────────► next

#include "kernels/wire/wire.hpp"

namespace treering {

template <class Call>
class RingWire {
 public:
  TREERING_DEVICE explicit RingWire(Call& call)
      : call_(call),
        prev_(call, (call.rank() + call.size() - 1) % call.size()),
        next_(call, (call.rank() + 1) % call.size()) {}

  /// input → next
  TREERING_DEVICE void send(const std::byte* input, Chunk chunk) {
    step<false, true>(chunk, input, nullptr);
  }
  /// input → output and next
  TREERING_DEVICE void copy_send(const std::byte* input, std::byte* output, Chunk chunk) {
    step<false, true>(chunk, input, output);
  }
  /// prev → output
  TREERING_DEVICE void recv(std::byte* output, Chunk chunk) {
    step<true, false>(chunk, nullptr, output);
  }
  /// prev ∘ input → next
  TREERING_DEVICE void recv_reduce_send(const std::byte* input, Chunk chunk) {
    step<true, true>(chunk, input, nullptr);
  }
  /// prev ∘ input → output; completes the reduction
  TREERING_DEVICE void recv_reduce_copy(const std::byte* input, std::byte* output, Chunk chunk) {
    step<true, false>(chunk, input, output, completes);
  }
  /// prev ∘ input → output and next; completes the reduction
  TREERING_DEVICE void recv_reduce_copy_send(const std::byte* input, std::byte* output,
                                             Chunk chunk) {
    step<true, true>(chunk, input, output, completes);
  }
  /// prev → output and next
  TREERING_DEVICE void recv_copy_send(std::byte* output, Chunk chunk) {
    step<true, true>(chunk, nullptr, output);
  }

 private:
  static constexpr bool completes = true;

  template <bool receive, bool transmit>
  TREERING_DEVICE void step(Chunk chunk, const std::byte* input, std::byte* output,
                            bool last = false) {
    const std::size_t bytes = call_.bytes(chunk);
    if constexpr (receive) prev_.await_post();
    if constexpr (transmit) next_.await_credit();
    if (!call_.agree()) return;
    const std::byte* from = receive ? prev_.incoming(bytes) : input;
    std::byte* to = transmit ? next_.outgoing(bytes) : output;
    call_.fold(
        receive && input != nullptr ? 2 : 1, [&](int i) { return i == 0 ? from : input; },
        transmit && output != nullptr ? 2 : 1, [&](int i) { return i == 0 ? to : output; },
        chunk.count,
        {.own = input == nullptr ? -1
                : receive        ? 1
                                 : 0,
         .last = last});
    call_.complete();
    if constexpr (receive) prev_.release();
    if constexpr (transmit) next_.post(bytes);
  }

  Call& call_;
  Wire<Call> prev_, next_;
};

}  // namespace treering
