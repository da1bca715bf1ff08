// dynamix-train: the commands that need libtorch. dynamix becomes this program for them.
#include "dynamix/cli/commands.h"
#include "dynamix/cli/compare_command.h"
#include "dynamix/cli/definitions.h"
#include "dynamix/cli/manual_command.h"
#include "dynamix/cli/program.h"
#include "dynamix/cli/train_command.h"

int main(int argc, char** argv) {
  return dynamix::RunProgram(argc, argv, [](CLI::App& app, const dynamix::Words&) {
    dynamix::AddEvaluateCommand(app, dynamix::MakeVirtualSuite);
    dynamix::AddCompareCommand(app);
    dynamix::AddTrainCommand(app);
    dynamix::AddManualCommand(app, dynamix::DefinitionsOf);
  });
}
