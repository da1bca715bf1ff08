// dynamix compare: one job under several policies, a table, a sentence and a report.
#pragma once

#include <CLI/CLI.hpp>

namespace dynamix {

void AddCompareCommand(CLI::App& app);

}  // namespace dynamix
