#include "collectives/facts.hpp"

#include <fmt/format.h>

#include "treering/error.hpp"

namespace treering {

void require_same(const Agreement& first, const Agreement& theirs, int rank) {
  const auto same = [&](const char* what, const auto& a, const auto& b) {
    if (a == b) return;
    throw Error(ErrorCode::mismatch,
                fmt::format("rank {} has {} = {}, rank 0 has {}; it must be the same on all ranks",
                            rank, what, b, a),
                {rank});
  };
  same("the library's wire version", first.version, theirs.version);
  same("TREERING_DEVICE", name(first.execution), name(theirs.execution));
  same("the world size", first.size, theirs.size);
  same("TREERING_INBOX", first.inbox, theirs.inbox);
  same("TREERING_SLOT", first.slot, theirs.slot);
  same("TREERING_BLOCKS", first.blocks, theirs.blocks);
  same("its number of blocks (TREERING_BLOCKS, TREERING_HOST_THREADS)", first.channels,
       theirs.channels);
  same("the deterministic option (TREERING_DETERMINISTIC)", first.deterministic,
       theirs.deterministic);
  same("the algorithm option (TREERING_ALGORITHM, by number; -1 is automatic)", first.algorithm,
       theirs.algorithm);
  same("the wire option (TREERING_WIRE, by number; -1 is automatic)", first.wire, theirs.wire);
}

}  // namespace treering
