#include "dynamix/cli/train_flags.h"

#include <cstdio>

#include "dynamix/cli/table.h"

namespace dynamix {

RunConfig ConfigOf(const TrainFlags& flags, const TrainJob& job) {
  return {.backend = flags.backend,
          .policy = flags.policy,
          .workload = job.workload,
          .scenario = job.scenario,
          .workers = job.workers,
          .seed = flags.seed,
          .window = flags.window};
}

nlohmann::json SummaryJson(const TrainFlags& flags, const TrainJob& job, const JobResult& result,
                           double seconds) {
  return SummaryJson(ConfigOf(flags, job), result, seconds);
}

void PrintSummary(const TrainFlags& flags, const TrainJob& job, const nlohmann::json& summary) {
  if (flags.json) {
    std::printf("%s\n", summary.dump().c_str());
    return;
  }
  Table table({"policy", "reached", "time to target", "accuracy", "windows", "last global batch"});
  table.Add({flags.policy, summary["reached"].get<bool>() ? "yes" : "no",
             Fixed(summary["time_to_target_s"].get<double>(), 2) + " s",
             Fixed(summary["accuracy"].get<double>(), 4),
             Fixed(summary["windows"].get<double>(), 0),
             Fixed(summary["last_global_batch"].get<double>(), 0)});
  std::printf("%s\n", table.Text().c_str());
  if (!job.folder.empty()) std::printf("left in %s\n", job.folder.c_str());
}

}  // namespace dynamix
