#include "dynamix/cli/launch_command.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "dynamix/core/input_error.h"
#include "dynamix/host/launcher.h"
#include "dynamix/host/worker_cgroups.h"

namespace dynamix {

void AddLaunchCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto options = std::make_shared<LaunchOptions>();
  CLI::App* command =
      app.add_subcommand("launch", "Start N ranks of any program with torchrun's environment");
  command->add_option("-n,--ranks", options->ranks, "Ranks to start on this machine")
      ->check(CLI::Range(1, 4096))
      ->required();
  command->add_option("--address", options->address, "MASTER_ADDR of the ranks")
      ->capture_default_str();
  command->add_option("--port", options->port, "MASTER_PORT of the ranks; 0: a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--backend",
          [options](const std::string& name) {
            options->environment.emplace_back("DYNAMIX_BACKEND", name);
          },
          "DYNAMIX_BACKEND of the ranks: the collectives, gloo or nccl")
      ->check(CLI::IsMember({"gloo", "nccl"}));
  command->add_option("--threads", options->threads, "OMP_NUM_THREADS of each rank")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--grace", options->grace_s, "Seconds from asking ranks to end to killing them")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag("!--no-prefix", options->prefix, "No rank before each line of output");
  command->add_option("program", options->command, "Program and arguments, after --")->required();
  command->footer(
      "Each rank gets a cgroup when the privileges allow; dynamix monitor --job launch-PID shows\n"
      "them, PID being that of this command.\n"
      "The exit code is that of the first rank that failed (128 + signal if a signal ended it).\n"
      "Example:\n  dynamix launch -n 4 -- ./my_training --epochs 3\n"
      "  dynamix launch -n 2 -- dynamix train --backend live --workload lenet_fashion");
  command->callback([options] {
    int code = 0;
    {
      const WorkerCgroups cgroups("launch", options->ranks);
      options->enter = [&](int rank) { return cgroups.Enter(rank); };
      code = Launch(*options);
    }
    if (code != 0) std::exit(code);
  });
}

}  // namespace dynamix
