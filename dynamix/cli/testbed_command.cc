#include "dynamix/cli/testbed_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "dynamix/host/launch_folder.h"
#include "dynamix/host/worker_cgroups.h"

namespace dynamix {

void AddTestbedCommand(CLI::App& app) {
  // The flag lives as long as the callback that reads it.
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* testbed = app.add_subcommand(
      "testbed", "The emulated cluster of `dynamix train --backend live --cluster FILE`");
  testbed->require_subcommand(1);
  testbed->footer("Example:\n  dynamix testbed clean");
  CLI::App* clean = testbed->add_subcommand(
      "clean", "Remove what testbeds and launches left behind that were killed");
  clean->add_flag("--json", *as_json, "one JSON object on stdout");
  clean->footer(
      "Network namespaces and processes end with their testbed; only cgroups and launchers' "
      "folders\n"
      "(dynamix-launch-*) outlive kill -9. A new testbed removes cgroups as well. What runs is "
      "left\n"
      "alone.\n"
      "Example:\n  dynamix testbed clean");
  clean->callback([as_json] {
    std::vector<std::string> removed = RemoveLeftovers();
    for (const std::string& folder : RemoveLeftLaunchFolders()) removed.push_back(folder);
    if (*as_json) {
      std::printf("%s\n", nlohmann::json{{"removed", removed}}.dump().c_str());
      return;
    }
    for (const std::string& name : removed) std::printf("removed %s\n", name.c_str());
    if (removed.empty()) std::printf("nothing to remove\n");
  });
}

}  // namespace dynamix
