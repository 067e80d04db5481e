#include "transport/rendezvous/environment.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "transport/mapped/process.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> text, Values&&... values) {
  throw Error(ErrorCode::invalid_setting, fmt::format(text, std::forward<Values>(values)...));
}

/// The environment, where an empty value is as good as none.
class Variables {
 public:
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> operator[](std::string_view name) const {
    auto value = lookup_(name);
    return value && value->empty() ? std::nullopt : value;
  }
  bool has(std::string_view name) const { return (*this)[name].has_value(); }

  std::optional<int> number(std::string_view name) const {
    const auto text = (*this)[name];
    if (!text) return std::nullopt;
    int value = 0;
    const char* const end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || rest != end || value < 0)
      refuse("{}={} is no number from 0; correct or unset it", name, *text);
    return value;
  }

  /// "NAME=value" for each that is set: names a job.
  std::string all(std::initializer_list<std::string_view> names) const {
    std::string text;
    for (const auto name : names)
      if (const auto value = (*this)[name]) text += fmt::format("\n{}={}", name, *value);
    return text;
  }

 private:
  const Lookup& lookup_;
};

// What names a job: empty if nothing does.

std::string torchrun_job(const Variables& v) {
  if (!v.has("MASTER_PORT") && !v.has("TORCHELASTIC_RUN_ID")) return {};
  return v.all({"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
}

std::string open_mpi_job(const Variables& v) {
  return v.all({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
}

/// The process manager that all ranks of this machine talk to by PMI is theirs alone. Nothing is
/// said to it: the descriptor belongs to the MPI library, which may be in the middle of a talk.
std::string pmi_job(const Variables& v) {
  const auto descriptor = v.number("PMI_FD");
  if (!descriptor) return {};
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(*descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0)
    refuse(
        "PMI_FD={} is not (or no longer, after MPI_Finalize) connected to a process manager of "
        "this machine, by which ranks could know their job; set TREERING_ID to words that only "
        "this job has",
        *descriptor);
  return fmt::format("\nprocess {}, started at {}", peer.pid, start_ticks(peer.pid).value_or(0));
}

std::string slurm_job(const Variables& v) {
  if (!v.has("SLURM_STEP_ID"))
    refuse(
        "SLURM_PROCID={} without SLURM_STEP_ID: this is a batch script, which Slurm runs once; "
        "start the program in it with srun, or mpirun, or torchrun",
        v["SLURM_PROCID"].value_or(""));
  return v.all({"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"});
}

struct Launcher {
  std::string_view name, rank, size, local_rank, local_size;
  std::string_view machines;  ///< a variable with their number, if there is no `local_size`
  std::string (*job)(const Variables&);
};

constexpr Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}, torchrun_job},
    {"Open MPI's mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {},
     open_mpi_job},
    {"mpiexec (PMI: MPICH, Intel MPI)",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {},
     pmi_job},
    {"Slurm's srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     {},
     "SLURM_NNODES",
     slurm_job},
};

bool is_there(const Launcher& launcher, const Variables& v) {
  const bool slurm_too = v.has("SLURM_PROCID");
  // Slurm speaks PMI as well, and its own variables tell more; Hydra alone sets the local size.
  if (launcher.rank == "PMI_RANK" && slurm_too) return v.has(launcher.local_size);
  // Slurm leaves its sizes in every shell of an allocation.
  if (launcher.rank == "SLURM_PROCID") return slurm_too;
  return v.has(launcher.rank) || v.has(launcher.size);
}

/// Both or none: `theirs` is the one that is missing.
[[noreturn]] void refuse_half(std::string_view set, int value, std::string_view missing) {
  refuse("{}={}, but {} is not set: set both, or neither", set, value, missing);
}

void check_range(std::string_view rank_name, int rank, std::string_view size_name, int size) {
  if (size < 1) refuse("{}={}: a job has at least one rank; correct or unset it", size_name, size);
  if (rank >= size)
    refuse("{}={}, but {}={}: ranks go from 0 to {}; correct or unset them", rank_name, rank,
           size_name, size, size - 1);
}

/// Only ranks of one machine can be joined.
void check_machines(const Launcher& launcher, const LaunchedPlace& place, const Variables& v) {
  std::string found;
  if (place.local_size != place.size)
    found = fmt::format("{}={}, but {}={}", launcher.size, place.size, launcher.local_size,
                        place.local_size);
  if (const int machines = v.number(launcher.machines).value_or(1); machines > 1)
    found = fmt::format("{}={}", launcher.machines, machines);
  if (!found.empty())
    throw Error(ErrorCode::unsupported,
                fmt::format("this job spans several machines ({}, by {}), and Treering joins ranks "
                            "of one machine only; start all ranks on one",
                            found, launcher.name));
}

LaunchedPlace read(const Launcher& launcher, const Settings& ours, const Variables& v) {
  const auto rank = v.number(launcher.rank), size = v.number(launcher.size);
  if (!size) refuse_half(launcher.rank, rank.value_or(0), launcher.size);
  if (!rank) refuse_half(launcher.size, *size, launcher.rank);
  check_range(launcher.rank, *rank, launcher.size, *size);
  LaunchedPlace place{.launcher = std::string(launcher.name),
                      .rank = *rank,
                      .size = *size,
                      .local_rank = v.number(launcher.local_rank).value_or(*rank),
                      .local_size = v.number(launcher.local_size).value_or(*size),
                      .job = {}};
  if (place.local_size > *size)
    refuse("{}={}, but {}={}: more ranks on this machine than in the job; correct or unset them",
           launcher.local_size, place.local_size, launcher.size, *size);
  check_range(launcher.local_rank, place.local_rank, launcher.local_size, place.local_size);
  check_machines(launcher, place, v);
  place.job = ours.id.empty() ? launcher.job(v) : ours.id;
  if (place.job.empty())
    refuse(
        "{}={} and {}={} say which rank this is, but nothing says of which job: set TREERING_ID to "
        "words that only this job has",
        launcher.rank, *rank, launcher.size, *size);
  place.job = fmt::format("{}: {}", launcher.name, place.job);
  return place;
}

/// TREERING_RANK, TREERING_SIZE and TREERING_ID.
LaunchedPlace by_hand(const Settings& ours) {
  if (!ours.size) refuse_half("TREERING_RANK", *ours.rank, "TREERING_SIZE");
  if (!ours.rank) refuse_half("TREERING_SIZE", *ours.size, "TREERING_RANK");
  check_range("TREERING_RANK", *ours.rank, "TREERING_SIZE", *ours.size);
  if (ours.id.empty())
    refuse(
        "TREERING_RANK={} and TREERING_SIZE={}, but TREERING_ID is not set: set it to words that "
        "only this job has",
        *ours.rank, *ours.size);
  return {"by hand", *ours.rank, *ours.size, *ours.rank, *ours.size, "by hand: " + ours.id};
}

[[noreturn]] void refuse_nothing(const Variables& v) {
  std::string looked_for = "TREERING_RANK and TREERING_SIZE (by hand)";
  for (const Launcher& launcher : launchers)
    looked_for += fmt::format(", {} and {} ({})", launcher.rank, launcher.size, launcher.name);
  const std::string_view hint =
      v.has("PMI_PORT") ? " PMI_PORT is set: run mpiexec without -pmi-port." : "";
  refuse(
      "no launcher has left a rank in this process's environment. Looked for: {}.{} Start the "
      "program by one of these, or pass a UniqueId to Communicator::create",
      looked_for, hint);
}

}  // namespace

LaunchedPlace find_place(const Settings& ours, const Lookup& lookup) {
  const Variables variables(lookup);
  if (ours.rank || ours.size) return by_hand(ours);
  for (const Launcher& launcher : launchers)
    if (is_there(launcher, variables)) return read(launcher, ours, variables);
  refuse_nothing(variables);
}

LaunchedPlace find_place() {
  return find_place(settings(), [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace treering
