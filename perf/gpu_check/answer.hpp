#pragma once

// Answers, and the files that hold them:
//
//     answers.jsonl   a line when a probe starts, one for each finding, one with the answer: on the
//                     disk before the next probe starts
//     result.json     everything, written at the end
//     table.txt       the same for people

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/gpu_check/probe.hpp"

namespace treering::gpu_check {

using Json = nlohmann::ordered_json;

enum class Status { ok, failed, hung, skipped };
const char* name(Status) noexcept;

struct Answer {
  std::string probe, question;
  int gpu = 0;
  Status status = Status::ok;
  std::string reason = {};  ///< why not ok
  double seconds = 0;
  Json findings = Json::object();
};

/// True for answers that make the exit status 1.
bool is_bad(const Answer&) noexcept;
Json to_json(const Answer&);

/// answers.jsonl
class Journal {
 public:
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  void started(const Probe&, int gpu);
  /// A line of a probe's findings, as it stood in the pipe.
  void finding(const std::string& probe, int gpu, const Json&);
  void answered(const Answer&);

 private:
  void write(const Json&, bool to_disk);
  std::FILE* file_;
};

/// What the answers are about.
struct Header {
  std::string version;
  bool host;  ///< the host stood in for a GPU
  int gpus;
};

Json to_json(const Header&, const std::vector<Answer>&);
std::string to_table(const Header&, const std::vector<Answer>&);
/// One answer's line of the table, without its findings.
std::string format_line(const Answer&, int gpus);

}  // namespace treering::gpu_check
