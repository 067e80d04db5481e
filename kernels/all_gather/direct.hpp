#pragma once

// Direct all-gather: everyone gives its part to everyone, straight into their outputs where those
// are registered on all ranks.
//
//     rank 0: a              a b c
//     rank 1: b     ──►      a b c        one step, (n-1)/n of the output sent by each rank
//     rank 2: c              a b c

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Group>
TREERING_DEVICE void all_gather_direct(Call<Group>& call) {
  Mesh<Group> mesh(call);
  const int n = call.size(), me = call.rank();
  const std::size_t count = call.args().call.count;
  if (mesh.offer()) {
    const Chunk mine = call.share(count);
    const std::ptrdiff_t offset = call.output(me * count + mine.begin) - call.output(0);
    call.fold_out(
        1, [&](int) { return call.input(mine.begin); },  //
        n, [&](int i) { return mesh.output_of((me + i) % n) + offset; }, mine.count);
    mesh.release();
    return mesh.await_released();
  }
  mesh.release();
  for (Rounds round = call.rounds(count, 1); round.more(); round.next()) {
    const Chunk mine = round.chunk(0);
    const auto part = [&](int rank) { return Chunk{rank * count + mine.begin, mine.count}; };
    mesh.send([&](int) { return mine; });
    call.fold_out(
        1, [&](int) { return call.input(mine.begin); },  //
        1, [&](int) { return call.output(part(me).begin); }, mine.count);
    mesh.collect(part);
  }
}

}  // namespace treering
