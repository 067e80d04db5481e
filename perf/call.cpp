#include "perf/call.hpp"

namespace treering {

void make_call(Communicator& comm, const Pattern& p, const void* input, void* output,
               const CallOptions& options) {
  CallOptions how = options;
  how.scale = pattern_scale(p, comm.rank());
  switch (p.collective) {
    case Collective::all_reduce:
      return comm.all_reduce(input, output, p.count, p.type, p.op, how);
    case Collective::reduce_scatter:
      return comm.reduce_scatter(input, output, p.count, p.type, p.op, how);
    case Collective::reduce_scatter_v:
      return comm.reduce_scatter_v(input, output, {sent_counts(p, comm.rank())}, p.type, p.op, how);
    case Collective::all_gather:
      return comm.all_gather(input, output, p.count, p.type, how);
    case Collective::all_gather_v:
      return comm.all_gather_v(input, output, {received_counts(p, comm.rank())}, p.type, how);
    case Collective::all_to_all:
      return comm.all_to_all(input, output, p.count, p.type, how);
    case Collective::all_to_all_v: {
      const auto sent = sent_counts(p, comm.rank()), received = received_counts(p, comm.rank());
      return comm.all_to_all_v(input, {sent}, output, {received}, p.type, how);
    }
    case Collective::broadcast:
      return comm.broadcast(input, output, p.count, p.type, p.root, how);
    case Collective::reduce:
      return comm.reduce(input, output, p.count, p.type, p.op, p.root, how);
    case Collective::gather:
      return comm.gather(input, output, p.count, p.type, p.root, how);
    case Collective::scatter:
      return comm.scatter(input, output, p.count, p.type, p.root, how);
    case Collective::barrier:
      return comm.barrier(how);
    case Collective::point_to_point:  // no pattern describes one
      return;
  }
}

}  // namespace treering
