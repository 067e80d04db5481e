#pragma once

// Direct all-gather: everyone gives its part to everyone, straight into their outputs where those
// are registered on all ranks. Parts may be uneven.
//
//     rank 0: a              a b c
//     rank 1: b     ──►      a b c        one step, (n-1)/n of the output sent by each rank
//     rank 2: c              a b c

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void all_gather_direct(Call& call) {
  Mesh mesh(call);
  const int n = call.size(), me = call.rank();
  const auto part = [&](int rank) { return call.output_part(rank); };
  const Chunk own{0, part(me).count};
  if (mesh.offer(
          Access::outputs, [&](int) { return own; }, part)) {
    const Chunk mine = call.share(own);
    call.fold_out(
        1, [&](int) { return call.input(mine.begin); },  //
        n, [&](int i) { return mesh.output_of((me + i) % n) + call.bytes(mine.begin); },
        mine.count);
    mesh.release();
    return mesh.await_released();
  }
  for (std::size_t round = 0; round < call.output_rounds(); ++round) {
    const Chunk mine = call.piece(own, round);
    mesh.send([&](int) { return mine; });
    call.fold_out(
        1, [&](int) { return call.input(mine.begin); },  //
        1, [&](int) { return call.output(part(me).begin + mine.begin); }, mine.count);
    mesh.collect([&](int rank) { return call.piece(part(rank), round); });
  }
}

}  // namespace treering
