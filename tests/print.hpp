#pragma once

// How GoogleTest prints the library's types, in messages and in the names of tests.

#include <ostream>

#include "treering/types.hpp"

namespace treering {

inline void PrintTo(DataType type, std::ostream* out) { *out << name(type); }
inline void PrintTo(ReduceOp op, std::ostream* out) { *out << name(op); }
inline void PrintTo(Collective collective, std::ostream* out) { *out << name(collective); }
inline void PrintTo(Algorithm algorithm, std::ostream* out) { *out << name(algorithm); }

}  // namespace treering
