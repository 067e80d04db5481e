#pragma once

// Both directions between this block and one peer, over the wires that the call uses.
//
//   sending                                    receiving
//   await_credit()   a slot is free            await_post()     a message of this call has come
//   outgoing(bytes)  where the message goes    incoming(bytes)  where it lies
//   post(bytes)      it is complete            release()        it has been consumed
//
// All threads call all of them alike; only the leader, who waits and raises flags, may call() them done:
// agree() comes between the waits and the data, complete() between the data and post() or release().
//
//   offer(bytes, …)  in place of a post: tells of as many bytes, and where the peer may access this
//                    rank's memory; carries no data
//   offered_input()  what the next message offers; null: nothing. Only `direct` wires offer
//   expect(bytes)    the call fails unless the message that has come has, or tells of, as many bytes
//   await_released() the peer has released all messages

#include <type_traits>

#include "kernels/wire/ll.hpp"
#include "kernels/wire/simple.hpp"

namespace treering {

template <class Call>
using Wire = std::conditional_t<Call::wire == WireType::ll, LlWire<Call>, SimpleWire<Call>>;

}  // namespace treering
