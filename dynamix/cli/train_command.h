// dynamix train: one job under one policy, on any backend.
#pragma once

#include "dynamix/cli/train_flags.h"

namespace CLI {
class App;
}

namespace dynamix {

void AddTrainCommand(CLI::App& app);

// The flags of a job that are the same for all its runs: what, on what, how.
void AddSharedFlags(CLI::App& command, TrainFlags& flags);

}  // namespace dynamix
