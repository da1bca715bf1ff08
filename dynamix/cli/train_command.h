// dynamix train: one job under one policy, on any backend.
#pragma once

#include <CLI/CLI.hpp>

namespace dynamix {

void AddTrainCommand(CLI::App& app);

}  // namespace dynamix
