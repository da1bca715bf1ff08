#include "dynamix/cli/train_flags.h"

#include <cstdio>
#include <cstdlib>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/table.h"

namespace dynamix {

nlohmann::json SummaryJson(const TrainFlags& flags, const TrainJob& job, const JobResult& result,
                           double seconds) {
  return {{"backend", flags.backend},
          {"workload", job.workload.name},
          {"cluster", job.scenario.name},
          {"policy", flags.policy},
          {"workers", job.workers},
          {"seed", flags.seed},
          {"seconds", seconds},
          {"reached", result.reached},
          {"time_to_target_s", result.time_to_target_s},
          {"accuracy", result.final_accuracy},
          {"windows", result.windows},
          {"mean_wait_share", result.mean_wait_share},
          {"last_global_batch", result.last_global_batch}};
}

std::string DatasetFolder(const std::string& dataset) {
  if (dataset == "fashion_mnist") return FashionMnistFolder();
  if (const char* all = std::getenv("DYNAMIX_DATASETS"))
    return (std::filesystem::path(all) / dataset).string();
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    return (std::filesystem::path(cache) / "dynamix" / dataset).string();
  const char* home = std::getenv("HOME");
  return (std::filesystem::path(home ? home : ".") / ".cache" / "dynamix" / dataset).string();
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
