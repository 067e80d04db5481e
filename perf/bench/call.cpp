#include "perf/bench/call.hpp"

namespace treering::perf {

void make_call(Communicator& comm, const Pattern& p, const void* in, void* out,
               const CallOptions& how) {
  switch (p.collective) {
    case Collective::all_reduce:
      return comm.all_reduce(in, out, p.count, p.type, p.op, how);
    case Collective::reduce_scatter:
      return comm.reduce_scatter(in, out, p.count, p.type, p.op, how);
    case Collective::all_gather:
      return comm.all_gather(in, out, p.count, p.type, how);
    case Collective::all_to_all:
      return comm.all_to_all(in, out, p.count, p.type, how);
    case Collective::barrier:
      return comm.barrier(how);
  }
}

}  // namespace treering::perf
