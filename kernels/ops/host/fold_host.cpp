// Chooses the loops, and does what is the same for all of them: copies, and streaming in blocks.
//
//     sources ──fold──► a block that stays in the L1 cache ──stream──► every destination
//
// So loops need no variants for streaming, the destinations may be aligned differently, and each
// gets its lines in long runs. The result is read twice out of L1, which costs less than a line of
// memory does.

#include "kernels/ops/host/fold_host.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/ops/host/machine.hpp"
#include "kernels/ops/host/stream.hpp"

namespace treering {

extern const FoldTable fold_table_baseline;
#ifdef __x86_64__
extern const FoldTable fold_table_avx2;
extern const FoldTable fold_table_avx512;
#endif

namespace {

constexpr std::size_t block_bytes = 1024;

void copy_all(const FoldRange& range) {
  for (int i = 0; i < range.destination_count; ++i)
    if (range.destinations[i] != range.sources[0])
      std::memcpy(range.destinations[i], range.sources[0], range.bytes);
}

/// The block's elements, from `at` bytes on, are folded by `loop` (null: copied) and streamed.
void stream_block(FoldLoop loop, const Fold& how, const FoldRange& range, std::size_t at,
                  std::size_t bytes) {
  alignas(cache_line) std::byte block[block_bytes];
  const std::byte* result = range.sources[0] + at;
  if (loop != nullptr) {
    const std::byte* sources[max_fan];
    std::byte* destination = block;
    for (int i = 0; i < range.source_count; ++i) sources[i] = range.sources[i] + at;
    loop(how, {sources, range.source_count, &destination, 1, bytes});
    result = block;
  }
  for (int i = 0; i < range.destination_count; ++i)
    if (range.destinations[i] + at != result)
      stream_copy(range.destinations[i] + at, result, bytes);
}

void stream_all(FoldLoop loop, const Fold& how, const FoldRange& range) {
  // The first block is short, so that the others begin with a line of the first destination.
  std::size_t end = std::min(range.bytes, bytes_to_line(range.destinations[0]));
  if (end == 0) end = std::min(range.bytes, block_bytes);
  for (std::size_t at = 0; at < range.bytes;
       at = end, end = std::min(range.bytes, end + block_bytes))
    stream_block(loop, how, range, at, end - at);
  finish_streaming();
}

struct Tables {
  const FoldTable* known[3] = {&fold_table_baseline};
  std::size_t count = 1;
  Tables() {
#ifdef __x86_64__
    if (has_avx2()) known[count++] = &fold_table_avx2;
    if (has_avx512()) known[count++] = &fold_table_avx512;
#endif
  }
};

}  // namespace

std::span<const FoldTable* const> fold_tables() noexcept {
  static const Tables tables;
  return {tables.known, tables.count};
}

void fold_with(const FoldTable& table, const Fold& how, const FoldRange& range) noexcept {
  if (range.bytes == 0 || range.destination_count == 0) return;
  const bool copies = is_copy(how, range.source_count);
  const FoldLoop loop =
      copies ? nullptr : table.loops[static_cast<int>(how.type)][static_cast<int>(how.op)];
  if (how.streaming)
    stream_all(loop, how, range);
  else if (loop == nullptr)
    copy_all(range);
  else
    loop(how, range);
}

void fold_on_host(const Fold& how, const FoldRange& range) noexcept {
  fold_with(*fold_tables().back(), how, range);
}

const char* fold_instruction_set() noexcept { return fold_tables().back()->instruction_set; }

}  // namespace treering
