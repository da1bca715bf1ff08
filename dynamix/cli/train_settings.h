// What runs and ranks of one training have in common, as lines of the form "name = value": whoever
// goes on with it, or joins it, is compared with them.
#pragma once

#include <string>
#include <vector>

#include "dynamix/cli/train_flags.h"

namespace dynamix {

// What must stay the same for a resumed job to be the same job, from the effective configuration:
// "workload.optimizer.rule = ..." and so on. Cluster and policy may change.
std::vector<std::string> TrainingSettings(const std::string& config);

// What elastic ranks must say alike, or they would wait for each other in different places.
std::vector<std::string> SharedSettings(const TrainFlags& flags, const TrainJob& job);

}  // namespace dynamix
