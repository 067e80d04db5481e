// A rank of oneCCL.

#include <oneapi/ccl.hpp>

#include <algorithm>
#include <optional>

#include "perf/peers/library.hpp"

namespace treering::perf {
namespace {

std::optional<ccl::datatype> ccl_type(DataType type) {
  switch (type) {
    case DataType::u8:
      return ccl::datatype::uint8;
    case DataType::i8:
      return ccl::datatype::int8;
    case DataType::u16:
      return ccl::datatype::uint16;
    case DataType::i16:
      return ccl::datatype::int16;
    case DataType::u32:
      return ccl::datatype::uint32;
    case DataType::i32:
      return ccl::datatype::int32;
    case DataType::u64:
      return ccl::datatype::uint64;
    case DataType::i64:
      return ccl::datatype::int64;
    case DataType::f16:
      return ccl::datatype::float16;
    case DataType::bf16:
      return ccl::datatype::bfloat16;
    case DataType::f32:
      return ccl::datatype::float32;
    case DataType::f64:
      return ccl::datatype::float64;
    default:
      return std::nullopt;
  }
}

std::optional<ccl::reduction> ccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ccl::reduction::sum;
    case ReduceOp::prod:
      return ccl::reduction::prod;
    case ReduceOp::min:
      return ccl::reduction::min;
    case ReduceOp::max:
      return ccl::reduction::max;
    default:
      return std::nullopt;
  }
}

/// Rank 0's key-value store, which the others find by a note in the control memory.
ccl::shared_ptr_class<ccl::kvs> meet(const Seat& seat) {
  ccl::shared_ptr_class<ccl::kvs> store;
  ccl::kvs::address_type address{};
  static_assert(sizeof address <= decltype(seat.control.note())::extent);
  std::byte* const note = seat.control.note().data();
  if (seat.rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
    std::memcpy(note, address.data(), address.size());
  }
  seat.control.barrier();
  std::memcpy(address.data(), note, address.size());
  return seat.rank == 0 ? store : ccl::create_kvs(address);
}

class OneCcl : public Library {
 public:
  explicit OneCcl(const Seat& seat) : comm_(start(seat)) {}

  std::string version() const override {
    return "oneCCL " + std::string(ccl::get_library_version().full);
  }

  bool can(const Pattern& p) const override {
    switch (p.collective) {
      case Collective::all_reduce:
      case Collective::reduce_scatter:
      case Collective::reduce:
        return ccl_type(p.type) && ccl_op(p.op);
      case Collective::all_gather:
      case Collective::all_to_all:
      case Collective::broadcast:
        return ccl_type(p.type).has_value();
      default:
        return p.collective == Collective::barrier;
    }
  }

  void call(const Pattern& p, const void* input, void* out) override {
    void* const in = const_cast<void*>(input);
    const ccl::datatype type = ccl_type(p.type).value_or(ccl::datatype::uint8);
    const ccl::reduction op = ccl_op(p.op).value_or(ccl::reduction::sum);
    switch (p.collective) {
      case Collective::all_reduce:
        return ccl::allreduce(in, out, p.count, type, op, comm_).wait();
      case Collective::reduce_scatter:
        return ccl::reduce_scatter(in, out, p.count, type, op, comm_).wait();
      case Collective::reduce:
        return ccl::reduce(in, out, p.count, type, op, p.root, comm_).wait();
      case Collective::all_gather: {
        const ccl::vector_class<std::size_t> counts(static_cast<std::size_t>(p.ranks), p.count);
        return ccl::allgatherv(in, p.count, out, counts, type, comm_).wait();
      }
      case Collective::all_to_all:
        return ccl::alltoall(in, out, p.count, type, comm_).wait();
      case Collective::broadcast:
        return ccl::broadcast(out, p.count, type, p.root, comm_).wait();
      default:
        ccl::barrier(comm_);
    }
  }

 private:
  static ccl::communicator start(const Seat& seat) {
    ccl::init();
    return ccl::create_communicator(seat.ranks, seat.rank, meet(seat));
  }

  ccl::communicator comm_;
};

}  // namespace
}  // namespace treering::perf

int main(int argc, char** argv) {
  using namespace treering::perf;
  return attend({argv + 1, argv + argc},
                [](const Seat& seat) { return std::make_unique<OneCcl>(seat); });
}
