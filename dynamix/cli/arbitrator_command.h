// dynamix arbitrator: serves advice to live jobs.
#pragma once

#include <CLI/CLI.hpp>

namespace dynamix {

void AddArbitratorCommand(CLI::App& app);

}  // namespace dynamix
