// One function per subcommand: each adds its flags to the application and runs when the user names
// it. Errors leave as exceptions; main.cc turns them into one line on stderr and an exit code
// (docs/errors.md).
#pragma once

#include "dynamix/cli/virtual_suite.h"

namespace CLI {
class App;
}

namespace dynamix {

void AddCalibrateCommand(CLI::App& app);
void AddChartCommand(CLI::App& app);
void AddDashboardCommand(CLI::App& app);
void AddDoctorCommand(CLI::App& app);
void AddEvaluateCommand(CLI::App& app, VirtualSuite suite);
void AddExportCommand(CLI::App& app);
void AddLearnCommand(CLI::App& app);
void AddListCommand(CLI::App& app);
void AddPolicyCommand(CLI::App& app);
void AddReportCommand(CLI::App& app);

}  // namespace dynamix
