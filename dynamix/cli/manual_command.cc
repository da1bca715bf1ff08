// dynamix manual and dynamix completion: what the program says of itself to man and to shells.
#include "dynamix/cli/manual_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "dynamix/cli/completion.h"
#include "dynamix/cli/version.h"

namespace dynamix {

void AddManualCommand(CLI::App& app, DefinitionsFunction definitions) {
  // The flag lives as long as the callback that reads it.
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("manual", "Print the manual page of all commands");
  command->add_flag("--json", *json, "commands and flags as one JSON object");
  command->footer("Example:\n  dynamix manual | man -l -");
  command->callback([&app, json, definitions] {
    const nlohmann::json all = definitions(app);
    std::printf("%s\n", *json ? all.dump().c_str() : ManualPage(all, VersionText()).c_str());
  });
}

void AddCompletionCommand(CLI::App& app, DefinitionsFunction definitions) {
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->require_subcommand(1);
  completion->footer("Example:\n  source <(dynamix completion bash)");
  const auto add = [&](const char* shell, const char* example,
                       std::string (*script)(const nlohmann::json&)) {
    CLI::App* command =
        completion->add_subcommand(shell, std::string("Print the script for ") + shell);
    command->footer(std::string("Example:\n  ") + example);
    command->callback(
        [&app, definitions, script] { std::printf("%s", script(definitions(app)).c_str()); });
  };
  add("bash", "source <(dynamix completion bash)", BashCompletion);
  add("zsh", "source <(dynamix completion zsh)", ZshCompletion);
  add("fish", "dynamix completion fish | source", FishCompletion);
}

}  // namespace dynamix
