#pragma once

// The report about kernels that can never complete.

#include <span>

#include "kernels/exec/simt/grid.hpp"
#include "treering/error.hpp"

namespace treering::simt {

/// All live threads of some block stand at barriers.
bool doomed(const Grid&);

/// Error{stuck}, for grids that will be dropped, that says for each block of the grids where its
/// threads are: "rank 1, block 0: barrier at ring.hpp:63, 31 of 32 threads arrived; thread 7 has
/// exited". `waiting_calls`: of the host.
Error stuck(std::span<Grid* const> grids, std::uint64_t seed,
            std::span<const char* const> waiting_calls);

}  // namespace treering::simt
