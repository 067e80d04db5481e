#include "collectives/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/refusal.hpp"
#include "kernels/exec/device.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// How much a rank has of the input or output.
enum class Extent : std::uint8_t {
  none,
  one,    ///< `count` elements
  all,    ///< that many for each rank
  parts,  ///< what the parts say
  part,   ///< this rank's of the parts
};

struct Extents {
  Extent input, output;
};

Extents extents_of(const Arguments& args, bool root) {
  using enum Extent;
  switch (args.collective) {
    case Collective::all_reduce:
      return {one, one};
    case Collective::reduce_scatter:
      return {all, one};
    case Collective::reduce_scatter_v:
      return {parts, part};
    case Collective::all_gather:
      return {one, all};
    case Collective::all_gather_v:
      return {part, parts};
    case Collective::all_to_all:
      return {all, all};
    case Collective::all_to_all_v:
      return {parts, parts};
    case Collective::broadcast:
      return {root ? one : none, one};
    case Collective::reduce:
      return {one, root ? one : none};
    case Collective::gather:
      return {one, root ? all : none};
    case Collective::scatter:
      return {root ? all : none, one};
    case Collective::barrier:
    case Collective::point_to_point:  // its messages are checked one by one
      return {none, none};
  }
  return {none, none};
}

/// Refuses with a sentence that begins with the call and the rank.
class Checker {
 public:
  Checker(const Arguments& args, int rank, int size) : args_(args), rank_(rank), size_(size) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw refusal(name(args_.collective), rank_, why);
  }

  void values() const {
    if (static_cast<int>(args_.type) >= data_types)
      refuse(fmt::format("`type` = {} is not a DataType", static_cast<int>(args_.type)));
    if (reduces(args_.collective) && static_cast<int>(args_.op) >= reduce_ops)
      refuse(fmt::format("`op` = {} is not a ReduceOp", static_cast<int>(args_.op)));
    if (reduces(args_.collective) && !applies(args_.op, args_.type))
      refuse(fmt::format("`op` = {} does not apply to {}; it has {}", name(args_.op),
                         name(args_.type), operators_of(args_.type)));
    if (args_.root < 0 || args_.root >= size_)
      refuse(fmt::format("`root` = {}, but ranks go from 0 to {}", args_.root, size_ - 1));
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(args_.count, size_of(args_.type) * static_cast<std::size_t>(size_),
                               &bytes) ||
        bytes > std::size_t{std::numeric_limits<std::ptrdiff_t>::max()})
      refuse(fmt::format(
          "`count` = {} is more than any memory holds: at most {} elements of {} for {} ranks",
          args_.count, most_elements() / static_cast<std::size_t>(size_), name(args_.type), size_));
  }

  /// Elements from the begin of the buffer to the end of the last part.
  std::size_t parts(const char* which, const Parts& parts) const {
    const auto ranks = static_cast<std::size_t>(size_);
    if (parts.counts.size() != ranks)
      refuse(fmt::format("`{}` has {} counts; there must be one for each of the {} ranks", which,
                         parts.counts.size(), size_));
    if (!parts.displacements.empty() && parts.displacements.size() != ranks)
      refuse(
          fmt::format("`{}` has {} displacements; there must be none, or one for each of the {} "
                      "ranks",
                      which, parts.displacements.size(), size_));
    std::size_t end = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::size_t begin = parts.displacements.empty() ? end : parts.displacements[r];
      if (begin > most_elements() || parts.counts[r] > most_elements() - begin)
        refuse(
            fmt::format("`{}`: the part of rank {}, {} elements from {} on, is more than any "
                        "memory holds",
                        which, r, parts.counts[r], begin));
      end = std::max(end, begin + parts.counts[r]);
    }
    return end;
  }

  void apart(const char* which, const Parts& parts) const {
    if (parts.displacements.empty()) return;
    std::vector<Chunk> chunks(parts.counts.size());
    write_chunks(parts, chunks.data());
    std::erase_if(chunks, [](const Chunk& chunk) { return chunk.count == 0; });
    std::ranges::sort(chunks, {}, &Chunk::begin);
    for (std::size_t i = 1; i < chunks.size(); ++i)
      if (chunks[i - 1].begin + chunks[i - 1].count > chunks[i].begin)
        refuse(fmt::format("`{}`: parts overlap, at element {}; each must have its own place",
                           which, chunks[i].begin));
  }

  void buffer(const char* which, const void* pointer, std::size_t bytes) const {
    if (pointer == nullptr && bytes != 0)
      refuse(fmt::format("`{}` is null{}; pass a buffer of {}", which,
                         args_.count == 0 ? "" : fmt::format(", but count is {}", args_.count),
                         format_size(bytes)));
    if (bytes != 0 && !device().reaches(pointer))
      refuse(
          fmt::format("`{}` = {} is memory that {} cannot reach; pass device memory, such as a "
                      "treering::Buffer",
                      which, pointer, device().describe()));
    const std::size_t element = size_of(args_.type);
    if ((reinterpret_cast<std::uintptr_t>(pointer) & (element - 1)) != 0)  // a power of two
      refuse(fmt::format("`{}` = {} is not aligned to its element: {} needs a multiple of {}",
                         which, pointer, name(args_.type), element));
  }

  void overlap(const std::byte* allowed) const {
    const auto* in = static_cast<const std::byte*>(args_.input);
    const auto* out = static_cast<const std::byte*>(args_.output);
    if (args_.input_bytes == 0 || args_.output_bytes == 0 || in == allowed) return;
    if (in + args_.input_bytes <= out || out + args_.output_bytes <= in) return;
    refuse(fmt::format(
        "`input` ({} at {}) and `output` ({} at {}) overlap; keep them apart, or in place pass "
        "`input` = {}",
        format_size(args_.input_bytes), args_.input, format_size(args_.output_bytes),
        static_cast<const void*>(args_.output), static_cast<const void*>(allowed)));
  }

  std::size_t most_elements() const {
    return std::numeric_limits<std::ptrdiff_t>::max() / size_of(args_.type);
  }

 private:
  const Arguments& args_;
  int rank_, size_;
};

/// Where the input of an in-place call lies, given its output.
const std::byte* in_place_input(const Arguments& args, int rank) {
  const auto output = reinterpret_cast<std::uintptr_t>(args.output);
  const auto index = static_cast<std::size_t>(rank);
  const std::size_t element = size_of(args.type);
  const auto own_part = [&](const Parts& parts) {
    std::vector<Chunk> chunks(parts.counts.size());
    write_chunks(parts, chunks.data());
    return chunks[index].begin * element;
  };
  std::uintptr_t input = output;
  if (args.collective == Collective::reduce_scatter || args.collective == Collective::scatter)
    input -= index * args.output_bytes;
  if (args.collective == Collective::all_gather || args.collective == Collective::gather)
    input += index * args.input_bytes;
  if (args.collective == Collective::reduce_scatter_v) input -= own_part(args.input_parts);
  if (args.collective == Collective::all_gather_v) input += own_part(args.output_parts);
  return reinterpret_cast<const std::byte*>(input);
}

/// In place, what comes from a rank replaces what went there.
void check_exchange(const Arguments& args, const Checker& checker, int rank) {
  const auto own = static_cast<std::size_t>(rank);
  const Parts &out = args.input_parts, &in = args.output_parts;
  if (out.counts[own] != in.counts[own])
    checker.refuse(fmt::format("`sent` gives rank {} itself {} elements, `received` expects {}",
                               rank, out.counts[own], in.counts[own]));
  if (args.input == args.output && args.input_bytes != 0 &&
      !(std::ranges::equal(out.counts, in.counts) &&
        std::ranges::equal(out.displacements, in.displacements)))
    checker.refuse("in place `sent` and `received` must be the same");
}

}  // namespace

void check_arguments(Arguments& args, int rank, int size) {
  const Checker checker(args, rank, size);
  checker.values();
  const Extents extents = extents_of(args, rank == args.root);
  const std::size_t element = size_of(args.type);
  const auto bytes_of = [&](Extent extent, const char* which, const Parts& own,
                            const Parts& other) -> std::size_t {
    switch (extent) {
      case Extent::none:
        return 0;
      case Extent::one:
        return args.count * element;
      case Extent::all:
        return args.count * element * static_cast<std::size_t>(size);
      case Extent::parts:
        return checker.parts(which, own) * element;
      case Extent::part:
        checker.parts("parts", other);
        return other.counts[static_cast<std::size_t>(rank)] * element;
    }
    return 0;
  };
  const bool exchange = args.collective == Collective::all_to_all_v;
  const char *sent = exchange ? "sent" : "parts", *received = exchange ? "received" : "parts";
  args.input_bytes = bytes_of(extents.input, sent, args.input_parts, args.output_parts);
  args.output_bytes = bytes_of(extents.output, received, args.output_parts, args.input_parts);
  checker.apart(received, args.output_parts);
  if (exchange) check_exchange(args, checker, rank);
  if (extents.input == Extent::none) args.input = nullptr;
  if (extents.output == Extent::none) args.output = nullptr;
  checker.buffer("input", args.input, args.input_bytes);
  checker.buffer("output", args.output, args.output_bytes);
  checker.overlap(in_place_input(args, rank));
}

void write_chunks(const Parts& parts, Chunk* chunks) {
  std::size_t next = 0;
  for (std::size_t r = 0; r < parts.counts.size(); ++r) {
    const std::size_t begin = parts.displacements.empty() ? next : parts.displacements[r];
    chunks[r] = {begin, parts.counts[r]};
    next += parts.counts[r];
  }
}

std::size_t sum_of(const Parts& parts) {
  return std::accumulate(parts.counts.begin(), parts.counts.end(), std::size_t{0});
}

std::uint32_t hash_of(const Parts& parts) {
  std::uint64_t mix = parts.counts.size();
  for (const std::size_t count : parts.counts) mix = scramble(mix ^ count);
  return static_cast<std::uint32_t>(mix);
}

}  // namespace treering
