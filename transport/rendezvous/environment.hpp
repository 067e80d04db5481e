#pragma once

// The place that a launcher gave this process, as its environment variables tell.
//
// The first of these that is there counts:
//
//     by hand      TREERING_RANK         TREERING_SIZE         TREERING_ID
//     torchrun     RANK                  WORLD_SIZE            TORCHELASTIC_RUN_ID, MASTER_PORT …
//     Open MPI     OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE  PMIX_NAMESPACE
//     PMI          PMI_RANK              PMI_SIZE              who is at the other end of PMI_FD
//     Slurm        SLURM_PROCID          SLURM_NTASKS          SLURM_JOB_ID, SLURM_STEP_ID …
//
// Those that start processes within a job of another come before that other: an mpirun in a Slurm
// job, torchrun under either.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/settings.hpp"

namespace treering {

struct LaunchedPlace {
  std::string launcher;  ///< for people
  int rank, size;
  int local_rank, local_size;  ///< among the ranks on this machine
  std::string job;  ///< the same on all ranks of the job, different for every other, or restart
};

/// A variable's value, if it has one.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// `ours`: for the TREERING_ variables; `lookup`: for all others. Throws Error: `invalid_setting` (a variable is missing, no
/// number, or contradicts another: names it, its value and what to do; or nothing was found, then
/// with all that was looked for), `unsupported` (the job spans machines).
LaunchedPlace find_place(const Settings& ours, const Lookup& lookup);

/// From this process's environment.
LaunchedPlace find_place();

}  // namespace treering
