#include "dynamix/cli/train_settings.h"

#include <sstream>

namespace dynamix {

std::vector<std::string> TrainingSettings(const std::string& config) {
  std::vector<std::string> settings;
  std::istringstream lines(config);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('['))
      section = line.substr(1, line.find(']') - 1) + ".";
    else if (!line.empty() && (section.starts_with("workload.") ||
                               (section == "run." && line.starts_with("window"))))
      settings.push_back(section + line);
  }
  return settings;
}

std::vector<std::string> SharedSettings(const TrainFlags& flags, const TrainJob& job) {
  std::vector<std::string> settings = TrainingSettings(job.config);
  const auto add = [&](const char* name, double value) {
    settings.push_back(std::string(name) + " = " + nlohmann::json(value).dump());
  };
  add("--evaluate-every", flags.evaluate_windows);
  add("--checkpoint-every", flags.checkpoint_windows);
  add("--held-out", flags.held_out);
  add("--time", flags.time_s);
  add("--epochs", flags.epochs);
  add("--full", flags.full);
  add("--seed", flags.seed);
  add("--timeout", flags.timeout_s);
  add("--min-workers", flags.min_workers);
  add("--no-record", flags.no_record);
  settings.push_back("--policy = " + flags.policy);
  settings.push_back("--advisor = " + flags.advisor.address);
  return settings;
}

}  // namespace dynamix
