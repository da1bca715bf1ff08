// dynamix launch: N ranks of any program on this machine, with torchrun's environment.
#pragma once

#include <CLI/CLI.hpp>

namespace dynamix {

void AddLaunchCommand(CLI::App& app);

}  // namespace dynamix
