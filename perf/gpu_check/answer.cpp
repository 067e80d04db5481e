#include "perf/gpu_check/answer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/system_error.hpp"

namespace treering::gpu_check {
namespace {

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string format_value(const Json& value) {
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : dump(value);
}

std::string count_of(const std::vector<Answer>& answers, Status status) {
  const auto count =
      std::ranges::count_if(answers, [=](const Answer& a) { return a.status == status; });
  return fmt::format("{} {}", count, name(status));
}

}  // namespace

const char* name(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::failed:
      return "failed";
    case Status::hung:
      return "hung";
    case Status::skipped:
      return "skipped";
  }
  return "?";
}

bool is_bad(const Answer& answer) noexcept {
  return answer.status == Status::failed || answer.status == Status::hung;
}

Json to_json(const Answer& a) {
  Json json = {{"item", a.probe}, {"gpu", a.gpu}, {"status", name(a.status)}};
  if (!a.reason.empty()) json["reason"] = a.reason;
  json["seconds"] = a.seconds;
  json["question"] = a.question;
  json["findings"] = a.findings;
  return json;
}

Journal::Journal(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
  if (file_ == nullptr) throw system_error("write " + path);
}

Journal::~Journal() { std::fclose(file_); }

void Journal::started(const Probe& probe, int gpu) {
  write({{"item", probe.name}, {"gpu", gpu}, {"status", "started"}}, true);
}

void Journal::finding(const std::string& probe, int gpu, const Json& finding) {
  Json line = {{"item", probe}, {"gpu", gpu}};
  line.update(finding);
  write(line, false);
}

void Journal::answered(const Answer& answer) { write(to_json(answer), true); }

void Journal::write(const Json& json, bool to_disk) {
  const std::string line = dump(json) + '\n';
  if (std::fputs(line.c_str(), file_) < 0 || std::fflush(file_) != 0)
    throw system_error("write down an answer");
  if (to_disk) fdatasync(fileno(file_));  // the machine itself may not survive the next probe
}

Json to_json(const Header& header, const std::vector<Answer>& answers) {
  Json json = {{"program", "treering-gpu-check"},
               {"version", header.version},
               {"device", header.host ? "host, in place of a GPU" : "GPU"},
               {"gpus", header.gpus},
               {"failed", std::ranges::count_if(answers, is_bad)}};
  json["items"] = Json::array();
  for (const Answer& answer : answers) json["items"].push_back(to_json(answer));
  return json;
}

std::string format_line(const Answer& a, int gpus) {
  const std::string where = gpus > 1 ? fmt::format(" @{}", a.gpu) : "";
  const std::string why = a.reason.empty() ? "" : fmt::format("  {}", a.reason);
  return fmt::format("{:<32} {:<7} {:6.1f} s{}", a.probe + where, name(a.status), a.seconds, why);
}

std::string to_table(const Header& header, const std::vector<Answer>& answers) {
  std::string text = fmt::format("# treering-gpu-check {} on {}\n", header.version,
                                 header.host ? "the host, in place of a GPU: nothing below says "
                                               "anything about a GPU"
                                             : fmt::format("{} GPU(s)", header.gpus));
  for (const Answer& answer : answers) {
    text += fmt::format("{}\n    {}\n", format_line(answer, header.gpus), answer.question);
    for (const auto& [name, value] : answer.findings.items())
      text += fmt::format("    {:<44} {}\n", name, format_value(value));
  }
  return text + fmt::format("# {}, {}, {}, {}\n", count_of(answers, Status::ok),
                            count_of(answers, Status::failed), count_of(answers, Status::hung),
                            count_of(answers, Status::skipped));
}

}  // namespace treering::gpu_check
