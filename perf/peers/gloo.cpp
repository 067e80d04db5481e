// A rank of Gloo, over TCP on the loopback device: Gloo has no shared memory.

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "base/system_error.hpp"
#include "perf/bench/pin.hpp"
#include "perf/peers/library.hpp"

namespace treering::perf {
namespace {

/// A folder in which the ranks find one another, and which is gone when they have.
class MeetingFolder {
 public:
  explicit MeetingFolder(const Seat& seat) : is_owner_(seat.rank == 0) {
    char* const note = reinterpret_cast<char*>(seat.control.note().data());
    if (is_owner_) {
      std::strcpy(note, (std::filesystem::temp_directory_path() / "treering-gloo-XXXXXX").c_str());
      if (mkdtemp(note) == nullptr) throw system_error("make a folder for Gloo's ranks to meet in");
    }
    seat.control.barrier();
    path_ = note;
  }
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;
  ~MeetingFolder() {
    std::error_code ignored;
    if (is_owner_) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  bool is_owner_;
  std::string path_;
};

/// Gloo's own thread, which this starts, spins while the caller of a collective holds a lock. Where
/// both have one core it does so for a whole time slice, 4 ms in every call, so it gets that of the
/// next rank.
std::shared_ptr<gloo::transport::Device> make_device(const Seat& seat) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) throw system_error("ask for my cores");
  if (seat.pin) pin_to_share((seat.rank + 1) % seat.ranks, seat.ranks);
  gloo::transport::tcp::attr where;
  where.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(where);
  if (sched_setaffinity(0, sizeof before, &before) != 0) throw system_error("return to my cores");
  return device;
}

std::shared_ptr<gloo::Context> connect(const Seat& seat) {
  const MeetingFolder folder(seat);
  auto context = std::make_shared<gloo::rendezvous::Context>(seat.rank, seat.ranks);
  gloo::rendezvous::FileStore store(folder.path());
  auto device = make_device(seat);
  context->connectFullMesh(store, device);
  seat.control.barrier();  // nobody needs the folder any more
  return context;
}

class Gloo : public Library {
 public:
  explicit Gloo(const Seat& seat) : context_(connect(seat)) {}

  std::string version() const override { return "Gloo over TCP"; }

  bool can(const Pattern& p) const override {
    switch (p.collective) {
      case Collective::all_reduce:
        return p.type == DataType::f32 && p.op == ReduceOp::sum;
      case Collective::reduce_scatter:
        return p.type == DataType::f32 && p.op == ReduceOp::sum &&
               p.count * static_cast<std::size_t>(p.ranks) * sizeof(float) <=
                   static_cast<std::size_t>(std::numeric_limits<int>::max());
      case Collective::all_gather:
      case Collective::all_to_all:
      case Collective::broadcast:
      case Collective::barrier:
        return true;
      default:
        return false;
    }
  }

  void call(const Pattern& p, const void* input, void* output) override {
    char* const in = const_cast<char*>(static_cast<const char*>(input));
    char* const out = static_cast<char*>(output);
    const std::size_t bytes = p.count * size_of(p.type),
                      all = bytes * static_cast<std::size_t>(p.ranks);
    switch (p.collective) {
      case Collective::all_reduce:
        return all_reduce(p, in, out);
      case Collective::reduce_scatter:
        return reduce_scatter(p, in, out);
      case Collective::all_gather: {
        gloo::AllgatherOptions how(context_);
        how.setInput(in, bytes);
        how.setOutput(out, all);
        return gloo::allgather(how);
      }
      case Collective::all_to_all: {
        gloo::AlltoallOptions how(context_);
        how.setInput(in, all);
        how.setOutput(out, all);
        return gloo::alltoall(how);
      }
      case Collective::broadcast: {
        gloo::BroadcastOptions how(context_);
        how.setOutput(out, bytes);
        how.setRoot(p.root);
        return gloo::broadcast(how);
      }
      default: {
        gloo::BarrierOptions how(context_);
        return gloo::barrier(how);
      }
    }
  }

 private:
  void all_reduce(const Pattern& p, char* in, char* out) {
    gloo::AllreduceOptions how(context_);
    how.setInput(reinterpret_cast<float*>(in), p.count);
    how.setOutput(reinterpret_cast<float*>(out), p.count);
    how.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(how);
  }

  /// Gloo's only one works in place, as an object for one buffer, so it takes a copy of the input,
  /// which is part of the time, and one of the result.
  void reduce_scatter(const Pattern& p, const char* in, char* out) {
    const std::size_t all = p.count * static_cast<std::size_t>(p.ranks);
    if (!scatter_ || scattered_.size() != all) {
      scattered_.resize(all);
      const std::vector<int> counts(static_cast<std::size_t>(p.ranks), static_cast<int>(p.count));
      scatter_ = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
          context_, std::vector<float*>{scattered_.data()}, static_cast<int>(all), counts);
    }
    std::memcpy(scattered_.data(), in, all * sizeof(float));
    scatter_->run();
    std::memcpy(out, scattered_.data(), p.count * sizeof(float));
  }

  std::shared_ptr<gloo::Context> context_;
  std::vector<float> scattered_;
  std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter_;
};

}  // namespace
}  // namespace treering::perf

int main(int argc, char** argv) {
  using namespace treering::perf;
  return attend({argv + 1, argv + argc},
                [](const Seat& seat) { return std::make_unique<Gloo>(seat); });
}
