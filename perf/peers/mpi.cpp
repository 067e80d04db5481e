// A rank of an MPI (Open MPI, MPICH, Intel MPI): this file is compiled once with the header of each.

#include <mpi.h>

#include <limits>
#include <stdexcept>

#include "perf/peers/library.hpp"

namespace treering::perf {
namespace {

void must(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(text);
}

/// MPI_DATATYPE_NULL: MPI has no such type.
MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::u8:
      return MPI_UINT8_T;
    case DataType::i8:
      return MPI_INT8_T;
    case DataType::u16:
      return MPI_UINT16_T;
    case DataType::i16:
      return MPI_INT16_T;
    case DataType::u32:
      return MPI_UINT32_T;
    case DataType::i32:
      return MPI_INT32_T;
    case DataType::u64:
      return MPI_UINT64_T;
    case DataType::i64:
      return MPI_INT64_T;
    case DataType::f32:
      return MPI_FLOAT;
    case DataType::f64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::bit_and:
      return MPI_BAND;
    case ReduceOp::bit_or:
      return MPI_BOR;
    case ReduceOp::bit_xor:
      return MPI_BXOR;
    default:
      return MPI_OP_NULL;
  }
}

class Mpi : public Library {
 public:
  Mpi() {
    must(MPI_Init(nullptr, nullptr));
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  ~Mpi() override { MPI_Finalize(); }

  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    return text;
  }

  bool can(const Pattern& p) const override {
    return even(p.collective) == p.collective && mpi_type(p.type) != MPI_DATATYPE_NULL &&
           (!reduces(p.collective) || mpi_op(p.op) != MPI_OP_NULL) &&
           p.count <= static_cast<std::size_t>(std::numeric_limits<int>::max());
  }

  void call(const Pattern& p, const void* in, void* out) override { must(make_call(p, in, out)); }

 private:
  int make_call(const Pattern& p, const void* in, void* out) const {
    const MPI_Datatype type = mpi_type(p.type);
    const MPI_Op op = mpi_op(p.op);
    const int count = static_cast<int>(p.count), root = p.root;
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (p.collective) {
      case Collective::all_reduce:
        return MPI_Allreduce(in, out, count, type, op, world);
      case Collective::reduce_scatter:
        return MPI_Reduce_scatter_block(in, out, count, type, op, world);
      case Collective::all_gather:
        return MPI_Allgather(in, count, type, out, count, type, world);
      case Collective::all_to_all:
        return MPI_Alltoall(in, count, type, out, count, type, world);
      case Collective::broadcast:
        return MPI_Bcast(out, count, type, root, world);  // in place
      case Collective::reduce:
        return MPI_Reduce(in, out, count, type, op, root, world);
      case Collective::gather:
        return MPI_Gather(in, count, type, out, count, type, root, world);
      case Collective::scatter:
        return MPI_Scatter(in, count, type, out, count, type, root, world);
      default:
        return MPI_Barrier(world);
    }
  }
};

}  // namespace
}  // namespace treering::perf

int main(int argc, char** argv) {
  return treering::perf::attend({argv + 1, argv + argc}, [](const treering::perf::Seat&) {
    return std::make_unique<treering::perf::Mpi>();
  });
}
