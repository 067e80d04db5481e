// Question 6: two processes on one GPU. Sharing memory by legacy IPC handles and by descriptors of
// virtual memory; flags between their kernels, without and with MPS; a peer that is killed.
//
//     probe ── shares words ──► second process
//       kernel ◄─ ping-pong ─► kernel

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "perf/gpu_check/probes/hops.hpp"
#include "perf/gpu_check/second.hpp"
#include "treering/error.hpp"

namespace treering::gpu_check {
namespace {

/// Without MPS a hop may cost a time slice, milliseconds.
constexpr std::uint64_t process_rounds = 100;
using Task = PingPong<Raise::release, Look::relaxed>;
constexpr auto mps_folder = "/tmp/treering-gpu-check-mps";

struct Offer {
  Sharing how;
  Shared memory;
};

void offer(int socket, Sharing how, const Shared& memory) {
  const Offer made{how, memory};
  send(socket, &made, sizeof made, memory.descriptor);
}

Offer take_offer(int socket) {
  Offer got{};
  const int descriptor = receive(socket, &got, sizeof got);
  got.memory.descriptor = descriptor;
  return got;
}

/// One side of the ping-pong. Nanoseconds, or 0 if the other side was not there.
std::uint64_t play(Rig& rig, std::uint64_t* words, int side) {
  std::uint64_t* const nanos = rig.host_words(1);
  Lane lane = rig.lane();
  rig.launch(lane, {}, Task{words, words + line_words, nanos, side, process_rounds, 2 * second_ns});
  if (!rig.wait(lane, 15)) throw std::runtime_error("ping-pong outlived its own time-outs");
  return load_acquire(*nanos);
}

void play_second(int socket) {
  Rig rig;
  const Offer got = take_offer(socket);
  std::uint64_t* const words = rig.open(got.how, got.memory);
  char ready = 1;
  send(socket, &ready, 1);
  const std::uint64_t nanos = play(rig, words, 1);
  send(socket, &nanos, sizeof nanos);
}

void ping_pong(Findings& findings, Sharing how) {
  Rig rig;
  Second second("ping_pong");
  Shared memory;
  std::uint64_t* const words = rig.share(how, 2 * line_words, memory);
  offer(second.socket(), how, memory);
  char ready = 0;
  receive(second.socket(), &ready, 1);
  findings.flag("mapped", true);
  const std::uint64_t mine = play(rig, words, 0);
  std::uint64_t theirs = 0;
  receive(second.socket(), &theirs, sizeof theirs);
  findings.flag("kernels_meet", mine != 0 && theirs != 0);
  findings.number("hop_ns", static_cast<double>(mine) / (2.0 * process_rounds));
}

/// Memory of the second process, for as long as that lives.
void lend(int socket) {
  Rig rig;
  Shared memory;
  rig.share(Sharing::legacy_ipc, 2 * line_words, memory);
  offer(socket, Sharing::legacy_ipc, memory);
  char never = 0;
  receive(socket, &never, 1);
}

/// Reads a word again and again until the host says stop.
struct Watch {
  const std::uint64_t* word;
  Spin spin;
  TREERING_DEVICE void operator()(At at) const {
    if (!at.leader()) return;
    const std::uint64_t end = nanoseconds() + spin.nanos;
    store_release(*spin.started, 1);
    std::uint64_t sum = 0;
    while (nanoseconds() < end && load_relaxed(*spin.stop) == 0) sum += load_relaxed(*word);
    store_release(*spin.ended, 1 + sum);
  }
};

/// What `use` throws, or nothing.
template <class Use>
std::string error_of(Use use) {
  try {
    use();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

void killed_peer(Findings& findings) {
  Rig rig;
  Second second("lend");
  const Offer got = take_offer(second.socket());
  const std::uint64_t* const word = rig.open(got.how, got.memory);
  std::uint64_t* const host = rig.host_words(3 * line_words);
  Lane lane = rig.lane();
  rig.launch(lane, {},
             Watch{word, {host, host + line_words, host + 2 * line_words, 10 * second_ns}});
  while (load_acquire(*host) == 0) rig.wait(lane, 0);
  second.kill();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // what happens needs some time
  const std::string during = error_of([&] { rig.wait(lane, 0); });
  store_release(host[line_words], 1);
  bool ended = false;
  const std::string after = error_of([&] { ended = rig.wait(lane, 5); });
  findings.text("error_while_reading", during);
  findings.text("error_at_the_end", after);
  findings.flag("kernel_ended_when_told", ended);
  if (!ended && after.empty()) return findings.fail("the kernel is stuck");
  Lane next = rig.lane();
  findings.text("error_of_the_next_kernel", error_of([&] {
                  std::uint64_t* const words = rig.host_words(3 * line_words);
                  rig.launch(next, {}, Spin{words, words + line_words, words + 2 * line_words, 0});
                  rig.wait(next, 5);
                }));
}

void open_while_spinning(Findings& findings) {
  Rig rig;
  Second second("lend");
  const Offer got = take_offer(second.socket());
  Spinner spinner(rig, rig.lane(), 10 * patience_seconds);
  if (!spinner.await_start(5)) return findings.fail("the spinning kernel did not start");
  rig.open(got.how, got.memory);
  findings.flag("waits_for_running_kernels", spinner.ended());
  spinner.stop();
  if (!spinner.wait(5)) findings.fail("the spinning kernel outlived its own time-out");
}

/// A control daemon of our own, for as long as this lives.
class Mps {
 public:
  Mps() {
    mkdir(mps_folder, 0700);
    try {
      daemon_ = start({"nvidia-cuda-mps-control", "-f"});
    } catch (const Error&) {
      return;  // it is not installed
    }
    for (int i = 0; i < 100 && !listens(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;
  ~Mps() {
    if (daemon_ > 0) kill(daemon_, SIGKILL);  // the server ends with this probe
    std::error_code ignored;
    std::filesystem::remove_all(mps_folder, ignored);
  }
  bool listens() const { return access((std::string(mps_folder) + "/control").c_str(), F_OK) == 0; }

 private:
  pid_t daemon_ = -1;
};

void with_mps(Findings& findings) {
  const Mps mps;
  if (!mps.listens())
    return findings.skip("nvidia-cuda-mps-control is not there, or does not start");
  if (!Rig().under_mps()) return findings.skip("MPS started, but this process is no client of it");
  ping_pong(findings, Sharing::legacy_ipc);
}

}  // namespace

Probes process_probes(Place) {
  return {{.name = "processes.legacy_ipc",
           .question = "legacy IPC between two processes, and a hop between their kernels",
           .seconds = 30,
           .run = [](Findings& findings) { ping_pong(findings, Sharing::legacy_ipc); }},
          {.name = "processes.vmm",
           .question = "the same with virtual memory by descriptor",
           .seconds = 30,
           .run = [](Findings& findings) { ping_pong(findings, Sharing::vmm); }},
          {.name = "processes.open_while_spinning",
           .question = "does opening an IPC handle wait for running kernels",
           .seconds = 20,
           .run = open_while_spinning},
          {.name = "processes.killed_peer",
           .question = "what a kernel meets that reads memory of a killed process",
           .seconds = 25,
           .run = killed_peer},
          {.name = "processes.mps",
           .question = "is MPS there and permitted, and what does a hop cost with it",
           .seconds = 30,
           .run = with_mps,
           .environment = {std::string("CUDA_MPS_PIPE_DIRECTORY=") + mps_folder,
                           std::string("CUDA_MPS_LOG_DIRECTORY=") + mps_folder}}};
}

std::vector<Helper> process_helpers(Place) { return {{"ping_pong", play_second}, {"lend", lend}}; }

}  // namespace treering::gpu_check
