// dynamix train --backend live: starts its ranks, on a testbed when the job names a cluster.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "dynamix/cli/testbed_launch.h"
#include "dynamix/cli/train_flags.h"
#include "dynamix/cli/trainer.h"
#include "dynamix/host/launcher.h"
#include "dynamix/host/worker_cgroups.h"

namespace dynamix {
namespace {

// The program itself, not its name: the user may have found it on PATH.
std::vector<std::string> OwnCommand() {
  std::vector<std::string> command = OwnCommandLine();
  command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  return command;
}

int LaunchPlainly(const TrainJob& job, LaunchOptions& launch) {
  const WorkerCgroups cgroups("launch", job.spec.workers);
  launch.enter = [&](int rank) { return cgroups.Enter(rank); };
  return Launch(launch);
}

}  // namespace

void LaunchRanks(const TrainFlags& flags, const TrainJob& job) {
  // Ranks save after the iteration under way, which may take as long as a rank may be silent.
  LaunchOptions launch{.ranks = job.spec.workers,
                       .command = OwnCommand(),
                       .prefix = false,
                       .grace_s = std::clamp(flags.timeout_s, 15.0, 3600.0),
                       .elastic = job.elastic,
                       .max_restarts = flags.max_restarts};
  const int code = flags.cluster.empty()
                       ? LaunchPlainly(job, launch)
                       : LaunchOnTestbed(job.spec, flags.testbed, flags.json, launch);
  // Only now: std::exit would leave testbed and cgroups standing.
  if (code != 0) std::exit(code);
}

}  // namespace dynamix
