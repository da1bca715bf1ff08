// dynamix dashboard: runs of a folder in the browser, finished ones and those that are being written.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/dashboard_flags.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/core/input_error.h"
#include "dynamix/rpc/address.h"

namespace dynamix {
namespace {

struct ShowFlags {
  std::string folder, ghost;
  DashboardFlags dashboard{.address = "127.0.0.1:7041"};
  TlsFlags tls;
  bool json = false;
};

void Show(const ShowFlags& flags) {
  if (!std::filesystem::is_directory(flags.folder))
    throw InputError::OutOfRange("folder", flags.folder, "a run's folder, or one of runs");
  RequireHostPort("--listen", flags.dashboard.address);
  const InterruptFlag interrupted;
  ShownFolder shown(flags.dashboard, flags.tls, flags.folder, /*quiet=*/true);
  Dashboard& dashboard = *shown.dashboard();
  if (!flags.ghost.empty()) {
    const std::filesystem::path run = std::filesystem::absolute(flags.folder).lexically_normal();
    dashboard.SetGhost(run.filename().string(), LoadRun(flags.ghost).rounds);
  }
  if (flags.json)
    std::printf(
        "%s\n",
        nlohmann::json{{"url", dashboard.url()}, {"port", dashboard.port()}}.dump().c_str());
  else
    std::printf("%s shows %s until ctrl-C\n", dashboard.url().c_str(), flags.folder.c_str());
  std::fflush(stdout);
  while (!interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

void AddDashboardCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<ShowFlags>();
  CLI::App* command =
      app.add_subcommand("dashboard", "Show runs in the browser, while they run and afterwards");
  command
      ->add_option("folder", flags->folder,
                   "a run, or a folder of runs: a comparison's, an arbitrator's")
      ->required();
  command->add_option("--listen", flags->dashboard.address, "HOST:PORT; port 0: a free one")
      ->capture_default_str();
  command->add_option("--dashboard-token-file", flags->dashboard.token,
                      "file with the token that viewers show, beyond loopback");
  command->add_option("--ghost", flags->ghost, "an earlier run to compare the folder's run with");
  AddTlsFlags(*command, flags->tls);
  command->add_flag("--json", flags->json, "one JSON object on stdout: url and port");
  command->footer(
      "Example:\n"
      "  dynamix dashboard runs/compare-live-lenet_fashion-demo-4\n"
      "  dynamix dashboard runs/today --ghost runs/yesterday");
  command->callback([flags] { Show(*flags); });
}

}  // namespace dynamix
