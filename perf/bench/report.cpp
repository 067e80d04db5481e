#include "perf/bench/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "perf/bench/pin.hpp"
#include "perf/patterns.hpp"

namespace treering::perf {
namespace {

using Json = nlohmann::ordered_json;

/// The text of the call out of place, and that of the call in place if it is another.
std::string both(const Row& row, std::string (*text)(const Measurement&)) {
  std::string first = text(row.out_of_place);
  if (!row.in_place.measured) return first;
  const std::string second = text(row.in_place);
  return first == second ? first : first + "/" + second;
}

std::string algorithm_of(const Measurement& m) { return name(m.algorithm); }
std::string wire_of(const Measurement& m) {
  if (m.wire != WireType::simple) return name(m.wire);
  return m.direct ? "direct" : "staged";
}

Json to_json(const Measurement& m, const Case& c, const Options& o) {
  if (!m.measured) return nullptr;
  const double algorithm = bandwidth(c.bytes, m.seconds);
  Json json{{"time_us", m.seconds * 1e6},
            {"algbw_GBps", algorithm},
            {"busbw_GBps", algorithm * bus_factor(c.collective, o.ranks)},
            {"wrong", m.wrong},
            {"out_of_bounds", m.out_of_bounds},
            {"algorithm", algorithm_of(m)},
            {"wire", wire_of(m)}};
  if (o.checks == 0) json["wrong"] = json["out_of_bounds"] = nullptr;
  return json;
}

void add(Json& json, const Comparison& versus) {
  Json peers = Json::object();
  for (const PeerSummary& peer : versus.peers)
    peers[peer.name] = {{"time_us", peer.seconds * 1e6}, {"ratio", peer.ratio}};
  const bool alone = versus.peers.empty();
  json.update({{"distance", name(versus.distance)},
               {"rounds", versus.rounds},
               {"dropped_rounds", versus.dropped},
               {"peers", peers},
               {"best_peer", alone ? Json(nullptr) : Json(versus.best_peer)},
               {"ratio", alone ? Json(nullptr) : Json(versus.ratio.middle)},
               {"ratio_low", alone ? Json(nullptr) : Json(versus.ratio.low)},
               {"ratio_high", alone ? Json(nullptr) : Json(versus.ratio.high)},
               {"memcpy_bound_us", versus.bound_seconds * 1e6}});
}

Json to_json(const Row& row, const Options& o) {
  const Case& c = row.what;
  Json json{{"collective", name(c.collective)},
            {"ranks", o.ranks},
            {"size", c.bytes},
            {"count", c.count},
            {"type", c.collective == Collective::barrier ? "none" : name(c.type)},
            {"redop", reduces(c.collective) ? name(c.op) : "none"},
            {"root", c.root},
            {"algorithm", algorithm_of(row.out_of_place)},
            {"wire", wire_of(row.out_of_place)},
            {"registered", o.registered},
            {"out_of_place", to_json(row.out_of_place, c, o)},
            {"in_place", to_json(row.in_place, c, o)}};
  if (row.comparison) add(json, *row.comparison);
  return json;
}

/// The model that the kernel names.
std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

void add(Json& run, const PeersReport& peers, const Options& o) {
  Json unmeasured = Json::array();
  for (const Unmeasured& gap : peers.unmeasured)
    unmeasured.push_back({{"collective", name(gap.what.collective)},
                          {"size", gap.what.bytes},
                          {"distance", name(gap.distance)},
                          {"rounds", gap.rounds}});
  run.update({{"rounds", o.rounds},
              {"cpu", processor()},
              {"near_below_us", near_below_seconds * 1e6},
              {"peer_versions", peers.versions},
              {"peers_unavailable", peers.unavailable},
              {"unmeasured", unmeasured}});
}

template <class T>
Json names(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T value : values) list.push_back(name(value));
  return list;
}

[[noreturn]] void refuse(ErrorCode code, const std::string& file) {
  throw Error(code, fmt::format("The file '{}' of --json cannot be written: {}.", file,
                                std::strerror(errno)));
}

}  // namespace

std::string algorithm_text(const Row& row) { return both(row, algorithm_of); }
std::string wire_text(const Row& row) { return both(row, wire_of); }

std::uint64_t wrong_values(const std::vector<Row>& rows) {
  std::uint64_t wrong = 0;
  for (const Row& row : rows) wrong += row.out_of_place.wrong + row.in_place.wrong;
  return wrong;
}

std::uint64_t broken_guards(const std::vector<Row>& rows) {
  std::uint64_t broken = 0;
  for (const Row& row : rows) broken += row.out_of_place.out_of_bounds + row.in_place.out_of_bounds;
  return broken;
}

double average_bus_bandwidth(const std::vector<Row>& rows, int ranks) {
  double sum = 0;
  int halves = 0;
  for (const Row& row : rows)
    for (const Measurement* m : {&row.out_of_place, &row.in_place}) {
      if (!m->measured || row.what.bytes == 0) continue;
      sum += bandwidth(row.what.bytes, m->seconds) * bus_factor(row.what.collective, ranks);
      ++halves;
    }
  return halves == 0 ? 0 : sum / halves;
}

std::string to_json(const Options& o, const std::vector<RankPlace>& places,
                    const std::vector<Row>& rows, const PeersReport* peers) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(to_json(row, o));
  Json run{{"version", TREERING_VERSION},
           {"host", host},
           {"cpus", cores()},
           {"device", places.empty() ? "" : places.front().device},
           {"ranks", o.ranks},
           {"mode", o.threads ? "threads" : "procs"},
           {"collectives", names(o.collectives)},
           {"datatypes", names(o.types)},
           {"ops", names(o.ops)},
           {"minbytes", o.min_bytes},
           {"maxbytes", o.max_bytes},
           {"stepbytes", o.step_bytes},
           {"stepfactor", o.step_bytes > 0 ? 1 : o.step_factor},
           {"iters", o.iterations},
           {"warmup_iters", o.warmups},
           {"agg_iters", o.calls_per_iteration},
           {"check", o.checks},
           {"forced_algorithm", o.algorithm ? Json(name(*o.algorithm)) : Json(nullptr)},
           {"forced_wire", o.wire ? Json(name(*o.wire)) : Json(nullptr)},
           {"deterministic", o.deterministic},
           {"registered", o.registered},
           {"rewrite", o.rewrite},
           {"pin", o.pin},
           {"average_busbw_GBps", average_bus_bandwidth(rows, o.ranks)},
           {"rows", list}};
  if (peers != nullptr) add(run, *peers, o);
  return run.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void check_writable(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (std::filesystem::is_directory(file))
    errno = EISDIR, refuse(ErrorCode::invalid_argument, file);
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    refuse(ErrorCode::invalid_argument, file);
}

void write_atomically(const std::string& file, const std::string& contents) {
  using std::filesystem::file_type;
  const file_type type = std::filesystem::symlink_status(file).type();
  if (type != file_type::not_found && type != file_type::regular) {  // replace no device, no link
    std::ofstream out(file, std::ios::trunc | std::ios::binary);
    if (!(out << contents << std::flush)) refuse(ErrorCode::system, file);
    return;
  }
  const std::string temporary = fmt::format("{}.{}.tmp", file, getpid());
  std::ofstream out(temporary, std::ios::trunc | std::ios::binary);
  out << contents;
  out.close();
  if (out && std::rename(temporary.c_str(), file.c_str()) == 0) return;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  refuse(ErrorCode::system, file);
}

}  // namespace treering::perf
