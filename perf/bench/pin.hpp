#pragma once

namespace treering::perf {

/// Cores that this process may use.
int cores();

/// Keeps the calling thread, and the threads it starts from now on, on its share of the cores: the
/// first nth of them for rank 0 of n, and so on; one core, in turn, where ranks outnumber cores.
/// Throws Error{system}.
void pin_to_share(int rank, int ranks);

}  // namespace treering::perf
