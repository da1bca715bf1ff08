// dynamix: every command. Those that train are handed over to dynamix-train (trainer.h).
#include "dynamix/cli/arbitrator_command.h"
#include "dynamix/cli/commands.h"
#include "dynamix/cli/launch_command.h"
#include "dynamix/cli/manual_command.h"
#include "dynamix/cli/monitor_command.h"
#include "dynamix/cli/program.h"
#include "dynamix/cli/testbed_command.h"
#include "dynamix/cli/trainer.h"

int main(int argc, char** argv) {
  return dynamix::RunProgram(argc, argv, [](CLI::App& app, const dynamix::Words& after) {
    dynamix::AddEvaluateCommand(app, dynamix::BecomeTrainerForSuite);
    dynamix::AddCalibrateCommand(app);
    dynamix::AddLearnCommand(app);
    dynamix::AddListCommand(app);
    dynamix::AddPolicyCommand(app);
    dynamix::AddReportCommand(app);
    dynamix::AddChartCommand(app);
    dynamix::AddMonitorCommand(app);
    dynamix::AddArbitratorCommand(app);
    dynamix::AddTestbedCommand(app);
    dynamix::AddLaunchCommand(app, after);
    dynamix::AddTrainerCommands(app);
    dynamix::AddDashboardCommand(app);
    dynamix::AddDoctorCommand(app);
    dynamix::AddExportCommand(app);
    dynamix::AddManualCommand(app, dynamix::DefinitionsWithTrainer);
    dynamix::AddCompletionCommand(app, dynamix::DefinitionsWithTrainer);
  });
}
