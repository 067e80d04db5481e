#include "perf/gpu_check/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/system_error.hpp"
#include "perf/gpu_check/child.hpp"

namespace treering::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

/// The exit status by which compute-sanitizer says that it has found something.
constexpr int found_by_tool = 86;

bool is_chosen(const Probe& probe, const Options& options) {
  if (options.only.empty()) return probe.quick || !options.quick;
  return std::ranges::any_of(options.only,
                             [&](const std::string& name) { return probe.name.starts_with(name); });
}

void check_names(const Probes& probes, const Options& options) {
  for (const std::string& name : options.only)
    if (std::ranges::none_of(probes, [&](const Probe& p) { return p.name.starts_with(name); }))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("There is no probe '{}'; --list names them.", name));
}

std::string find_sanitizer() {
  std::string folders = "/usr/local/cuda/bin";
  if (const char* path = std::getenv("PATH")) folders = fmt::format("{}:{}", path, folders);
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::string file = folders.substr(begin, end - begin) + "/compute-sanitizer";
    if (access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return {};
}

/// CUDA_VISIBLE_DEVICES by which GPU `first` of those that this process may use becomes number 0,
/// with the others behind it.
std::string visible_devices(int first, int gpus) {
  std::vector<std::string> all;
  if (const char* given = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::string_view rest(given);
    while (!rest.empty()) {
      all.emplace_back(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(all.back().size() + 1, rest.size()));
    }
  }
  for (int i = static_cast<int>(all.size()); i < gpus; ++i) all.push_back(std::to_string(i));
  std::ranges::rotate(all, all.begin() + first);
  return fmt::format("CUDA_VISIBLE_DEVICES={}", fmt::join(all, ","));
}

class Run {
 public:
  Run(const Options& options, const std::string& version)
      : options_(options), end_(Clock::now() + std::chrono::seconds(options.deadline)) {
    header_ = {.version = version, .host = true, .gpus = 1};
    std::error_code error;
    std::filesystem::create_directories(folder("logs"), error);
    if (error) throw Error(ErrorCode::system, fmt::format("{}: {}", folder(""), error.message()));
    journal_.emplace(folder("answers.jsonl"));
  }

  int everything() {
    const Answer machine = ask(machine_probe(), 0);
    if (machine.status == Status::ok) {
      header_.gpus = machine.findings.value("gpus", 0);
      header_.host = header_.gpus == 0;
      if (header_.host) header_.gpus = machines(OnHost{});
      introduce();
      const Probes probes = all_probes(header_.host);
      check_names(probes, options_);
      for (const Probe& probe : probes)
        if (is_chosen(probe, options_))
          for (int gpu = 0; gpu < (probe.each_gpu ? header_.gpus : 1); ++gpu) ask(probe, gpu);
    }
    return finish();
  }

 private:
  std::string folder(const std::string& file) const { return options_.output + "/" + file; }

  void introduce() const {
    if (header_.host)
      fmt::print(
          "There is no GPU that this build can use: the host takes its place. That exercises this\n"
          "program; it says nothing about any GPU.\n");
    fmt::print("{} GPU(s). Answers as they come: {}\n", header_.host ? 0 : header_.gpus,
               folder("answers.jsonl"));
  }

  Answer ask(const Probe& probe, int gpu) {
    Answer answer{.probe = probe.name, .question = probe.question, .gpu = gpu};
    const auto begin = Clock::now();
    const std::string sanitizer = probe.tool.empty() ? "" : find_sanitizer();
    if (begin >= end_) {
      skip(answer, fmt::format("the {} s of --deadline were used up", options_.deadline));
    } else if (!probe.tool.empty() && sanitizer.empty()) {
      skip(answer, "compute-sanitizer is neither in PATH nor in /usr/local/cuda/bin");
    } else {
      journal_->started(probe, gpu);
      run_probe(probe, sanitizer, answer);
    }
    answer.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    journal_->answered(answer);
    fmt::print("{}\n", format_line(answer, header_.gpus));
    std::fflush(stdout);
    if (answer.findings.contains("copied_gbps"))
      ceiling_ = answer.findings["copied_gbps"].get<double>();
    answers_.push_back(answer);
    return answer;
  }

  static void skip(Answer& answer, const std::string& why) {
    answer.status = Status::skipped;
    answer.reason = why;
  }
  static void fail(Answer& answer, const std::string& why) {
    if (answer.status == Status::failed) return;
    answer.status = Status::failed;
    answer.reason = why;
  }

  Command command(const Probe& probe, const std::string& sanitizer, int gpu) const {
    Command command{.words = {own_path(), "--probe", probe.name, "--parent",
                              std::to_string(getpid()), "--output", options_.output},
                    .environment = probe.environment,
                    .log = folder(fmt::format("logs/{}.{}.log", probe.name, gpu))};
    if (options_.quick) command.words.emplace_back("--quick");
    if (!sanitizer.empty())
      command.words.insert(
          command.words.begin(),
          {sanitizer, "--tool", probe.tool, "--error-exitcode", std::to_string(found_by_tool)});
    if (header_.gpus > 1) command.environment.push_back(visible_devices(gpu, header_.gpus));
    if (ceiling_ > 0) command.environment.push_back(fmt::format("GPU_CHECK_CEILING={}", ceiling_));
    return command;
  }

  void run_probe(const Probe& probe, const std::string& sanitizer, Answer& answer) {
    bool done = false;
    const Command how = command(probe, sanitizer, answer.gpu);
    const auto deadline = std::min(Clock::now() + std::chrono::seconds(probe.seconds), end_);
    const Ending ending = run_child(how, deadline, [&](const std::string& line) {
      const Json finding = Json::parse(line, nullptr, false);
      if (!finding.is_object()) return;
      journal_->finding(probe.name, answer.gpu, finding);
      if (finding.contains("failed")) fail(answer, finding["failed"].get<std::string>());
      if (finding.contains("skipped") && answer.status == Status::ok)
        skip(answer, finding["skipped"].get<std::string>());
      if (finding.contains("name"))
        answer.findings[finding["name"].get<std::string>()] = finding["value"];
      done = done || finding.contains("done");
    });
    judge(ending, done, how.log, answer);
  }

  static void judge(const Ending& ending, bool done, const std::string& log, Answer& answer) {
    if (!ending.in_time) {
      answer.status = Status::hung;
      answer.reason = ending.gone ? "killed at its deadline"
                                  : "did not even end when it was killed; the driver holds it";
    } else if (ending.status == found_by_tool) {
      fail(answer, fmt::format("compute-sanitizer found something: {}", log));
    } else if (ending.status < 0) {
      fail(answer, fmt::format("crashed: {} (signal {}); see {}", strsignal(-ending.status),
                               -ending.status, log));
    } else if (ending.status != 0 || !done) {
      fail(answer, fmt::format("ended with status {} {} an answer; see {}", ending.status,
                               done ? "after" : "before", log));
    }
  }

  int finish() const {
    const std::string table = to_table(header_, answers_);
    fmt::print("\n{}", table);
    write("table.txt", table);
    write("result.json",
          to_json(header_, answers_).dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
    return std::ranges::any_of(answers_, is_bad) ? 1 : 0;
  }

  void write(const char* name, const std::string& text) const {
    std::ofstream file(folder(name));
    if (!(file << text).flush()) throw system_error("write " + folder(name));
  }

  const Options& options_;
  Clock::time_point end_;
  Header header_;
  std::optional<Journal> journal_;
  std::vector<Answer> answers_;
  double ceiling_ = 0;  ///< of copying, once it is known
};

}  // namespace

int run(const Options& options, const std::string& version) {
  return Run(options, version).everything();
}

void list(bool host) {
  for (const Probe& probe : all_probes(host)) fmt::print("{:<32} {}\n", probe.name, probe.question);
}

}  // namespace treering::gpu_check
