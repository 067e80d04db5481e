#include "collectives/arguments.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/units.hpp"
#include "kernels/exec/device.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// Refuses with a sentence that begins with the call and the rank.
class Checker {
 public:
  Checker(const Arguments& args, int rank) : args_(args), rank_(rank) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} on rank {}: {}", name(args_.collective), rank_, why), {rank_});
  }

  void buffer(const char* which, const void* pointer, std::size_t bytes) const {
    if (pointer == nullptr && bytes != 0)
      refuse(fmt::format("`{}` is null, but count is {}; pass a buffer of {}", which, args_.count,
                         format_size(bytes)));
    if (bytes != 0 && !device().reaches(pointer))
      refuse(
          fmt::format("`{}` = {} is memory that {} cannot reach; pass device memory, such as a "
                      "treering::Buffer",
                      which, pointer, device().describe()));
    const std::size_t element = size_of(args_.type);
    if (reinterpret_cast<std::uintptr_t>(pointer) % element != 0)
      refuse(fmt::format("`{}` = {} is not aligned to its element: {} needs a multiple of {}",
                         which, pointer, name(args_.type), element));
  }

  void overlap(const std::byte* allowed) const {
    const auto* in = static_cast<const std::byte*>(args_.input);
    const auto* out = static_cast<const std::byte*>(args_.output);
    const bool apart = in + args_.input_bytes <= out || out + args_.output_bytes <= in;
    if (apart || in == allowed || args_.count == 0) return;
    refuse(fmt::format(
        "`input` ({} at {}) and `output` ({} at {}) overlap; keep them apart, or in place pass "
        "`input` = {}",
        format_size(args_.input_bytes), args_.input, format_size(args_.output_bytes),
        static_cast<const void*>(args_.output), static_cast<const void*>(allowed)));
  }

 private:
  const Arguments& args_;
  int rank_;
};

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

}  // namespace

const std::byte* in_place_input(const Arguments& args, int rank) {
  const auto* out = static_cast<const std::byte*>(args.output);
  const auto index = static_cast<std::size_t>(rank);
  switch (args.collective) {
    case Collective::reduce_scatter:
      return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(out) -
                                                index * args.output_bytes);
    case Collective::all_gather:
      return out + index * args.input_bytes;
    default:
      return out;
  }
}

Arguments check_arguments(Collective collective, const void* input, void* output, std::size_t count,
                          DataType type, ReduceOp op, int rank, int size) {
  Arguments args{collective, type, op, input, output, count, 0, 0};
  const Checker checker(args, rank);
  if (static_cast<int>(type) >= data_types)
    checker.refuse(fmt::format("`type` = {} is not a DataType", static_cast<int>(type)));
  if (reduces(collective) && static_cast<int>(op) >= reduce_ops)
    checker.refuse(fmt::format("`op` = {} is not a ReduceOp", static_cast<int>(op)));
  if (reduces(collective) && !applies(op, type))
    checker.refuse(fmt::format("`op` = {} does not apply to {}; it has {}", name(op), name(type),
                               operators_of(type)));

  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / size_of(type) / ranks;
  if (count > most)
    checker.refuse(fmt::format(
        "`count` = {} is more than any memory holds: at most {} elements of {} for {} ranks", count,
        most, name(type), size));
  const std::size_t bytes = count * size_of(type);
  const bool wide_input =
      collective == Collective::reduce_scatter || collective == Collective::all_to_all;
  const bool wide_output =
      collective == Collective::all_gather || collective == Collective::all_to_all;
  args.input_bytes = wide_input ? bytes * ranks : bytes;
  args.output_bytes = wide_output ? bytes * ranks : bytes;
  checker.buffer("input", input, args.input_bytes);
  checker.buffer("output", output, args.output_bytes);
  checker.overlap(in_place_input(args, rank));
  return args;
}

}  // namespace treering
