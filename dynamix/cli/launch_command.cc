#include "dynamix/cli/launch_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/testbed_launch.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/blas_kernels.h"
#include "dynamix/host/launcher.h"
#include "dynamix/host/worker_cgroups.h"

namespace dynamix {
namespace {

struct LaunchFlags {
  LaunchOptions launch{.ranks = 0};
  // Of an emulated cluster; empty: ranks as they are.
  std::string cluster, workload = "lenet_fashion", testbed = "pacing";
  int seed = 1;
  std::string name;  // for dynamix monitor --job; empty: none
  bool json = false;
};

int LaunchPlainly(LaunchFlags& flags) {
  LaunchOptions& launch = flags.launch;
  if (launch.ranks == 0) throw InputError("-n: how many ranks? (only a --cluster has a number)");
  const WorkerCgroups cgroups("launch", launch.ranks, flags.name);
  launch.enter = [&](int rank) { return cgroups.Enter(rank); };
  if (flags.json)
    std::printf("%s\n", nlohmann::json{{"job", cgroups.job()},
                                       {"ranks", launch.ranks},
                                       {"measured", cgroups.error().empty()}}
                            .dump()
                            .c_str());
  std::fflush(stdout);
  return Launch(launch);
}

int LaunchOnCluster(LaunchFlags& flags) {
  const std::string cluster = FindData("--cluster", flags.cluster, "scenarios", ".toml");
  const std::string workload = FindWorkloadFile("--workload", flags.workload);
  JobSpec job;
  job.scenario = LoadScenario(cluster);
  job.workers = flags.launch.ranks > 0 ? flags.launch.ranks : job.scenario.workers;
  job.workload = LoadWorkload(workload).OnWorkers(job.workers);
  job.seed = static_cast<std::uint64_t>(flags.seed);
  flags.launch.ranks = job.workers;
  // For the ranks' pace: dynamix.testbed in Python reads them.
  flags.launch.environment.emplace_back("DYNAMIX_CLUSTER", cluster);
  flags.launch.environment.emplace_back("DYNAMIX_WORKLOAD", workload);
  flags.launch.environment.emplace_back("DYNAMIX_SEED", std::to_string(flags.seed));
  flags.launch.environment.emplace_back("DYNAMIX_TESTBED", flags.testbed);
  return LaunchOnTestbed(job, flags.testbed, /*quiet=*/false, flags.launch);
}

void AddClusterFlags(CLI::App& command, LaunchFlags& flags) {
  command.add_option("--cluster", flags.cluster,
                     "Emulate this cluster: a file, or one of scenarios/; needs root");
  command
      .add_option("--workload", flags.workload,
                  "With --cluster: what a sample costs there, and the length of its run")
      ->capture_default_str();
  command
      .add_option("--testbed", flags.testbed,
                  "With --cluster: pacing (ranks slow themselves down), quota or plain")
      ->check(CLI::IsMember({"pacing", "quota", "plain"}))
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "With --cluster: of its jitter and events")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
}

}  // namespace

void AddLaunchCommand(CLI::App& app, const std::vector<std::string>& after) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<LaunchFlags>();
  // Lives as long as the flags do.
  const std::shared_ptr<LaunchOptions> options(flags, &flags->launch);
  CLI::App* command =
      app.add_subcommand("launch", "Start N ranks of any program with torchrun's environment");
  command->add_option("-n,--ranks", options->ranks, "Ranks to start on this machine")
      ->check(CLI::Range(1, 4096));
  command->add_option("--address", options->address, "MASTER_ADDR of the ranks")
      ->check([](const std::string& given) {
        return given.empty() ? "an address is expected, not ''" : std::string();
      })
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
  command->add_flag("--elastic", options->elastic, "Let the ranks go on without one that is lost");
  command
      ->add_option("--max-restarts", options->max_restarts,
                   "Start each lost rank again so often, after a pause that doubles; elastic")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  AddClusterFlags(*command, *flags);
  command->add_option("--name", flags->name, "Name of the job, for dynamix monitor --job NAME");
  command->add_flag("--json", flags->json,
                    "One JSON object before the ranks' output: job, ranks, measured");
  command->add_flag_callback(
      "--no-prefix", [options] { options->prefix = false; }, "No rank before each line of output");
  command->add_option("program", options->command, "Program and arguments, after --");
  command->footer(
      "Each rank gets a cgroup when the privileges allow; dynamix monitor --job NAME shows them\n"
      "(without --name: launch-PID, PID being that of this command).\n"
      "The exit code is that of the first rank that failed (128 + signal if a signal ended it).\n"
      "Examples:\n  dynamix launch -n 4 --name mine -- ./my_training --epochs 3\n"
      "  dynamix launch -n 2 -- dynamix train --backend live --workload lenet_fashion\n"
      "  dynamix launch -n 4 --max-restarts 3 -- dynamix train --backend live --elastic\n"
      "  dynamix launch --cluster live/demo -- /usr/bin/python3 my_training.py");
  command->callback([flags, after] {
    std::vector<std::string>& words = flags->launch.command;
    words.insert(words.end(), after.begin(), after.end());
    if (words.empty()) throw InputError("program: which one? (after --)");
    flags->launch.elastic = flags->launch.elastic || flags->launch.max_restarts > 0;
    PassOnBlasKernels();
    // Testbed and cgroups are gone before std::exit, which would leave them standing.
    const int code = flags->cluster.empty() ? LaunchPlainly(*flags) : LaunchOnCluster(*flags);
    if (code != 0) std::exit(code);
  });
}

}  // namespace dynamix
