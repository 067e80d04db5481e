#pragma once

// Both directions between this block and one peer, over the wires that the call uses.
//
//   sending                                    receiving
//   await_credit()   a slot is free            await_post()     a message of this call has come
//   outgoing(bytes)  where the message goes    incoming(bytes)  where it lies
//   post(bytes, …)   it is complete            release()        it has been consumed
//
// All threads call all of them alike; only the leader, who waits and raises flags, may call() them done:
// agree() comes between the waits and the data, complete() between the data and post() or release().
//
// A post may say where this rank's buffers lie:
//
//   offered_input()  where the next message says so; null: nowhere. Only `direct` wires do
//   offer(sent, expected, …)  in place of a post: how many bytes the peer is to get and to bring, and no data
//   require_fit(sent, expected)  the offer that has come must fit this rank's
//   await_released() the peer has released all messages that say where this rank's buffers lie

#include <type_traits>

#include "kernels/wire/ll.hpp"
#include "kernels/wire/simple.hpp"

namespace treering {

template <class Call>
using Wire = std::conditional_t<Call::wire == WireType::ll, LlWire<Call>, SimpleWire<Call>>;

}  // namespace treering
