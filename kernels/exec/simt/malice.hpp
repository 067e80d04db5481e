#pragma once

// What a GPU does that a CPU never shows. Each kind of malice is off unless Config asks for it;
// docs/executions.md tells what it finds.

namespace treering::simt {

struct Malice {
  /// Blocks that can be resident at once; others begin when earlier ones have ended. Kernels that
  /// are launched together begin only when there is room for all. 0: no limit.
  int slots = 0;
  /// Queues of the hardware, on which streams are spread: in each, work is issued in the order of
  /// launches, so that a stream may wait for another's earlier work. 0: one for each stream.
  int hardware_queues = 0;
  /// Blocks begin late, in an order drawn by the seed, whichever was launched first.
  bool late_blocks = false;
  /// A kernel's first launch, allocations and their likes wait until all that was launched before
  /// them has ended.
  bool synchronizing = false;
  /// 16-byte stores come as two halves, in any order, with other threads' steps between them.
  bool torn_stores = false;
  /// Plain loads return what was there before any store that no acquire has made visible.
  bool stale_loads = false;

  static constexpr Malice all(int slots, int hardware_queues) {
    return {slots, hardware_queues, true, true, true, true};
  }
};

}  // namespace treering::simt
