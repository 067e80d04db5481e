#include "collectives/facts.hpp"

#include <fmt/format.h>

#include <string_view>

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
  same("the registered option", first.registered, theirs.registered);
  same("TREERING_CHOICE (a hash of it)", first.choice, theirs.choice);
  const auto algorithm = [](int a) { return a < 0 ? "auto" : name(static_cast<Algorithm>(a)); };
  same("the algorithm option (TREERING_ALGORITHM)", std::string_view(algorithm(first.algorithm)),
       std::string_view(algorithm(theirs.algorithm)));
  const auto wire = [](int w) { return w < 0 ? "auto" : name(static_cast<WireType>(w)); };
  same("the wire option (TREERING_WIRE)", std::string_view(wire(first.wire)),
       std::string_view(wire(theirs.wire)));
}

}  // namespace treering
