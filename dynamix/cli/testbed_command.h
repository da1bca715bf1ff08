// dynamix testbed clean: removes what testbeds and launches left that were killed.
#pragma once

#include <CLI/CLI.hpp>

namespace dynamix {

void AddTestbedCommand(CLI::App& app);

}  // namespace dynamix
