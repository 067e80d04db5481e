// Question 5: which ways of handing data over are sound, and which only seem so? What is sound must
// never fail; what is not is counted, to know whether this GPU shows it.

#include <numeric>

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

struct Handing {
  bool cached = false;       ///< the reader loads by way of the read-only cache
  bool barrier = true;       ///< the writer's threads meet before the flag is raised
  bool alias_fence = false;  ///< the writer fences between two addresses
};

/// Block 0 writes a word per thread and raises a flag; block 1 reads them. Barriers are the same
/// for all threads whatever happens: after a wait in vain nobody waits any more.
template <Handing handing>
struct Handover {
  std::uint64_t* written;     ///< one word per thread
  const std::uint64_t* read;  ///< the same, perhaps at another address
  std::uint64_t *full, *empty;
  std::uint64_t *stale, *lost;  ///< host words; stale: one per thread of the reader
  std::uint64_t rounds;

  TREERING_DEVICE void operator()(At at) const {
    std::uint64_t old = 0;
    bool waits = true;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      if (at.leader() && waits)
        waits = at.block == 0 ? wait_for(*empty, round - 1, nanoseconds() + second_ns)
                              : wait_for(*full, round, nanoseconds() + second_ns);
      at.sync();
      if (at.block == 0) {
        written[at.thread] = round;
        if constexpr (handing.alias_fence) fence_alias();
        if constexpr (handing.barrier) at.sync();
        if (at.leader()) store_release(*full, round);
      } else {
        const std::uint64_t value =
            handing.cached ? load_cached(read + at.thread) : read[at.thread];
        old += value != round;
        at.sync();
        if (at.leader()) store_release(*empty, round);
      }
    }
    if (at.block == 1) store_release(stale[at.thread], old);
    if (!waits) store_release(*lost, 1);
  }
};

constexpr int threads = 8 * warp;
constexpr std::uint64_t handovers = 100 * effort;

template <Handing handing>
double stale_words(Rig& rig, std::uint64_t* written, const std::uint64_t* read) {
  std::uint64_t* const flags = rig.device_words(2 * line_words);
  std::uint64_t* const stale = rig.host_words(threads + 1);
  const Handover<handing> task{written,         read,     flags, flags + line_words, stale,
                               stale + threads, handovers};
  Lane lane = rig.lane();
  rig.launch(lane, {.blocks = 2, .threads = threads, .cooperative = true}, task);
  if (!rig.wait(lane, 10)) throw std::runtime_error("a handover outlived its own time-outs");
  if (load_acquire(stale[threads]) != 0) throw std::runtime_error("a flag was never seen");
  return static_cast<double>(std::accumulate(stale, stale + threads, std::uint64_t{0}));
}

void handover(Findings& findings) {
  Rig rig;
  std::uint64_t* const data = rig.device_words(threads);
  const double stale = stale_words<Handing{}>(rig, data, data);
  findings.number("stale_words", stale);
  if (stale > 0) findings.fail("release, barriers and acquire did not make data visible");
}

void cached_loads(Findings& findings) {
  Rig rig;
  std::uint64_t* const data = rig.device_words(threads);
  findings.number("words", static_cast<double>(threads * handovers));
  findings.number("stale_words", stale_words<Handing{.cached = true}>(rig, data, data));
}

void missing_barrier(Findings& findings) {
  Rig rig;
  std::uint64_t* const data = rig.device_words(threads);
  findings.number("words", static_cast<double>(threads * handovers));
  findings.number("stale_words", stale_words<Handing{.barrier = false}>(rig, data, data));
}

void two_addresses(Findings& findings) {
  Rig rig;
  const auto [first, second] = rig.two_addresses(threads);
  findings.number("words", static_cast<double>(threads * handovers));
  findings.number("stale_words_without_fence", stale_words<Handing{}>(rig, first, second));
  const auto [third, fourth] = rig.two_addresses(threads);
  const double fenced = stale_words<Handing{.alias_fence = true}>(rig, third, fourth);
  findings.number("stale_words_with_fence", fenced);
}

/// LL: each 64-bit word holds its flag (the lower half) and its payload. No barriers: every thread
/// of the writer has a partner in the reader.
struct Elements {
  Pack* lines;
  std::uint64_t* credits;      ///< a line's first word each
  std::uint64_t *torn, *lost;  ///< host words; torn: one per thread
  std::uint64_t rounds;

  TREERING_DEVICE static std::uint64_t word(std::uint64_t round, std::uint64_t seed) {
    return (round * 0x9e3779b1u + seed) << 32 | round;
  }

  TREERING_DEVICE void operator()(At at) const {
    std::uint64_t wrong = 0;
    const auto seed = 2 * static_cast<std::uint64_t>(at.thread);
    std::uint64_t& credit = credits[at.thread * line_words];
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::uint64_t end = nanoseconds() + second_ns;
      const Pack sent{word(round, seed), word(round, seed + 1)};
      if (at.block == 0) {
        if (!wait_for(credit, round - 1, end)) return store_release(*lost, 1);
        store_elements(lines + at.thread, sent);
      } else {
        Pack got = load_elements(lines + at.thread);
        while ((got.low & 0xffffffff) != round || (got.high & 0xffffffff) != round) {
          if (nanoseconds() > end) return store_release(*lost, 1);
          poll_again();
          got = load_elements(lines + at.thread);
        }
        wrong += got.low != sent.low;
        wrong += got.high != sent.high;
        store_release(credit, round);
      }
    }
    if (at.block == 1) store_release(torn[at.thread], wrong);
  }
};

void ll(Findings& findings) {
  Rig rig;
  std::uint64_t* const torn = rig.host_words(threads + 1);
  const Elements task{reinterpret_cast<Pack*>(rig.device_words(2 * threads)),
                      rig.device_words(threads * line_words), torn, torn + threads, 100 * effort};
  Lane lane = rig.lane();
  rig.launch(lane, {.blocks = 2, .threads = threads, .cooperative = true}, task);
  if (!rig.wait(lane, 10)) throw std::runtime_error("the lines outlived their own time-outs");
  const auto wrong = std::accumulate(torn, torn + threads, std::uint64_t{0});
  findings.number("words", 2.0 * threads * static_cast<double>(task.rounds));
  findings.number("torn_words", static_cast<double>(wrong));
  if (load_acquire(*task.lost) != 0) findings.fail("a flag was never seen");
  if (wrong > 0) findings.fail("a 64-bit word came in halves");
}

/// LL128: lines of 15 words and a flag, by warps: even blocks write, odd ones read, or all of a
/// grid do the same. All that a warp decides is decided by all of its threads alike.
struct Lines {
  std::uint64_t *lines, *credits;  ///< credits: a line for each warp
  std::uint64_t *torn, *lost;      ///< host words, one per thread of a side, and one
  std::uint64_t rounds;
  int role;  ///< 0: all write, 1: all read, -1: by block

  TREERING_DEVICE void operator()(At at) const {
    const bool reads = role < 0 ? at.block % 2 == 1 : role == 1;
    const int thread = (role < 0 ? at.block / 2 : at.block) * at.threads + at.thread;
    std::uint64_t& credit = credits[static_cast<std::size_t>(thread / warp) * line_words];
    std::uint64_t* const line =
        lines + static_cast<std::size_t>(thread / line_threads) * line_words;
    std::uint64_t wrong = 0;
    bool waits = true;
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::uint64_t end = nanoseconds() + second_ns, base = round * 64;
      if (reads) {
        for (; waits && !load_line(at, line, base, round, wrong); poll_again())
          waits = !warp_any(nanoseconds() > end);
        if (warp_any(!waits)) break;
        if (at.thread % warp == 0) store_release(credit, round);
      } else {
        for (; waits && warp_any(load_relaxed(credit) < round - 1); poll_again())
          waits = !warp_any(nanoseconds() > end);
        if (!waits) break;
        store_line(at, line, base, round);
      }
    }
    if (!waits) store_release(*lost, 1);
    if (reads) store_release(torn[thread], wrong);
  }
};

struct Soak {
  Soak(Rig& memory, Rig& results, int blocks)
      : count(static_cast<std::size_t>(blocks * threads)),
        torn(results.host_words(count + 1)),
        task{memory.device_words((count / line_threads) * line_words),
             memory.device_words((count / warp) * line_words),
             torn,
             torn + count,
             5000 * effort,
             -1} {}

  void judge(Findings& findings) const {
    const auto wrong = std::accumulate(torn, torn + count, std::uint64_t{0});
    const auto lines = task.rounds * (count / line_threads);
    findings.number("lines", static_cast<double>(lines));
    findings.number("torn_words", static_cast<double>(wrong));
    if (load_acquire(*task.lost) != 0) findings.fail("a flag was never seen");
  }

  std::size_t count;
  std::uint64_t* torn;
  Lines task;
};

/// Traffic while the lines travel.
void make_noise(Rig& rig, Lane& lane, int copies) {
  const std::size_t bytes = rig.big_bytes() / 4;
  std::byte *const from = rig.device_bytes(bytes), *const to = rig.device_bytes(bytes);
  for (int i = 0; i < copies; ++i) rig.copy(lane, to, from, bytes);
}

void ll128(Findings& findings) {
  Rig rig;
  const int pairs = std::max(rig.resident<Lines>(threads) / 4, 1);
  const Soak soak(rig, rig, pairs);
  Lane lane = rig.lane(), noise = rig.lane();
  make_noise(rig, noise, 50);
  rig.launch(lane, {.blocks = 2 * pairs, .threads = threads, .cooperative = true}, soak.task);
  if (!rig.wait(lane, 30)) throw std::runtime_error("the lines outlived their own time-outs");
  soak.judge(findings);
}

/// The lines and the credits lie on the reader's GPU.
void ll128_peers(Findings& findings) {
  if (machines(Place{}) < 2) return findings.skip("there is one GPU");
  Rig writer(0), reader(1);
  if (!writer.reach(reader) || !reader.reach(writer))
    return findings.skip("GPU 0 and GPU 1 do not reach each other's memory");
  Soak soak(reader, reader, 4);
  soak.task.rounds = 500 * effort;
  Lane reads = reader.lane(), writes = writer.lane();
  reader.load<Lines>();
  writer.load<Lines>();
  soak.task.role = 1;
  reader.launch(reads, {.blocks = 4, .threads = threads, .cooperative = true}, soak.task);
  soak.task.role = 0;
  writer.launch(writes, {.blocks = 4, .threads = threads, .cooperative = true}, soak.task);
  if (!reader.wait(reads, 30) || !writer.wait(writes, 30))
    throw std::runtime_error("the lines outlived their own time-outs");
  soak.judge(findings);
}

}  // namespace

Probes litmus_probes(Place) {
  return {{.name = "litmus.handover",
           .question = "data, barrier, release | acquire, barrier, data: never stale",
           .seconds = 15,
           .run = handover},
          {.name = "litmus.cached_loads",
           .question = "are non-coherent loads (__restrict__, __ldg) stale",
           .seconds = 15,
           .run = cached_loads},
          {.name = "litmus.missing_barrier",
           .question = "does a missing barrier before the flag show",
           .seconds = 15,
           .run = missing_barrier},
          {.name = "litmus.two_addresses",
           .question = "is memory at two addresses stale, without and with fence.proxy.alias",
           .seconds = 20,
           .run = two_addresses},
          {.name = "litmus.ll",
           .question = "do 64-bit words with a flag inside arrive whole",
           .seconds = 15,
           .run = ll},
          {.name = "litmus.ll128",
           .question = "do 128-byte lines with one flag arrive whole on one GPU, under load",
           .seconds = 40,
           .run = ll128,
           .quick = false},
          {.name = "litmus.ll128_peers",
           .question = "the same between two GPUs",
           .seconds = 40,
           .run = ll128_peers,
           .quick = false}};
}

}  // namespace treering::gpu_check
