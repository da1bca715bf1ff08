#include "dynamix/cli/train_command.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/cli/train_flags.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/host/folder_lock.h"
#include "dynamix/host/rank_place.h"
#include "dynamix/record/run_config.h"
#include "dynamix/simulator/task.h"
#include "dynamix/training/checkpoint.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/virtual_cluster.h"

namespace dynamix {
namespace fs = std::filesystem;
namespace {

void Override(const TrainFlags& flags, Workload& workload, Scenario& scenario) {
  if (!flags.model.empty()) workload.model.name = flags.model;
  if (flags.width > 0) workload.model.width = flags.width;
  if (flags.planned_samples > 0) workload.optimizer.planned_samples = flags.planned_samples;
  if (flags.learning_rate > 0) workload.optimizer.learning_rate = flags.learning_rate;
  if (flags.start_batch > 0) {
    RequireInRange("--start-batch, with the cluster's bounds,", flags.start_batch,
                   scenario.bounds.lowest(), scenario.bounds.highest());
    scenario.start_batch = flags.start_batch;
  }
  if (flags.target_accuracy > 0 && flags.target_loss > 0)
    throw InputError("--target and --target-loss: at most one of them ends the job");
  if (flags.target_accuracy > 0) workload.target = {.accuracy = flags.target_accuracy};
  if (flags.target_loss > 0) workload.target = {.loss = flags.target_loss};
  if (flags.epochs > 0) {
    workload.optimizer.planned_samples = flags.epochs * TrainingSamples(workload.model.dataset);
    scenario.sample_budget = 1;
  }
  if (!flags.rule.empty()) {
    const auto rule = ParseLearningRateRule(flags.rule);
    if (!rule) throw InputError::OutOfRange("--rule", flags.rule, "none, linear, sqrt or adascale");
    workload.optimizer.rule = *rule;
  }
  if (!flags.clock.empty()) {
    const auto clock = ParseScheduleClock(flags.clock);
    if (!clock) throw InputError::OutOfRange("--clock", flags.clock, "samples or steps");
    workload.optimizer.clock = *clock;
  }
}

// Who started this rank knows how many there are; who started none of it asks with --workers.
int Workers(const TrainFlags& flags, const Scenario& scenario) {
  if (flags.backend == "live") {
    const RankPlace place = OwnPlace(flags);
    if (place.size > 1 && flags.workers > 0 && flags.workers != place.size)
      throw InputError::OutOfRange("--workers", flags.workers,
                                   std::to_string(place.size) + ", the ranks that were started");
    if (place.size > 1 || (place.given && flags.workers == 0 && flags.cluster.empty()))
      return place.size;
  }
  return flags.workers > 0 ? flags.workers : scenario.workers;
}

bool WorkersLeave(const Scenario& scenario) {
  return std::any_of(scenario.events.begin(), scenario.events.end(), [](const Event& event) {
    return event.kind == EventKind::kLeave || event.kind == EventKind::kJoin;
  });
}

// Starting anew replaces what the folder holds: fine for a finished run, a loss for another one.
void RequireNothingUnfinished(const fs::path& folder) {
  RequireRunFolder("--run", folder);
  if (!HasCheckpoint(folder) || fs::exists(folder / "summary.json")) return;
  throw InputError(folder.string() +
                   " holds a run that is not finished: go on with it with --resume, name another "
                   "--run, or remove the folder");
}

}  // namespace

TrainJob MakeJob(const TrainFlags& flags) {
  TrainJob job;
  const std::string cluster = flags.cluster.empty() ? "homogeneous" : flags.cluster;
  JobSpec& spec = job.spec;
  spec.scenario = LoadScenario(FindData("--cluster", cluster, "scenarios", ".toml"));
  spec.workload = LoadWorkload(FindData("--workload", flags.workload, "workloads", ".toml"));
  spec.workers = Workers(flags, spec.scenario);
  spec.workload = spec.workload.OnWorkers(spec.workers);
  spec.seed = static_cast<std::uint64_t>(flags.seed);
  spec.window = flags.window;
  job.policy = FindPolicy(flags.policy);
  Override(flags, spec.workload, spec.scenario);
  spec.scenario.Validate();
  spec.workload.Validate();
  const std::string policy = std::filesystem::path(flags.policy).stem().string();
  const std::string what = spec.workload.name + "-" + spec.scenario.name + "-",
                    how = policy + "-" + std::to_string(flags.seed);
  job.name = what + std::to_string(spec.workers) + "-" + how;
  job.training = what + how;
  // A cluster whose workers leave has jobs that go on without them.
  job.elastic = flags.elastic ||
                (flags.backend == "live" && !flags.cluster.empty() && WorkersLeave(spec.scenario));
  if (!flags.no_record) job.folder = flags.run.empty() ? "runs/" + job.name : flags.run;
  job.config = FormatRunConfig(ConfigOf(flags, spec));
  return job;
}

namespace {

// A run on an Environment: sim or virtual.
void RunEnvironment(const TrainFlags& flags, const TrainJob& job, SimulatedCluster& environment,
                    const ReferenceCurve* reference) {
  Arbitrator arbitrator(job.policy, {.guard = {.on = flags.guard}, .seed = job.spec.seed});
  RunFolder folder(job.folder, job.config, /*keep=*/0, WarnOfLoss);
  // Gone before the table is printed.
  std::optional<ProgressBar> bar;
  bar.emplace("train", static_cast<long>(job.spec.workload.optimizer.planned_samples), flags.json);
  const InterruptFlag interrupted;
  if (flags.time_s > 0 || flags.epochs > 0) {
    JobLimits limits = environment.limits();
    limits.seconds = flags.time_s > 0 ? flags.time_s : std::numeric_limits<double>::infinity();
    environment.set_limits(limits);
  }
  const double most_s =
      environment.limits().seconds > 0 ? environment.limits().seconds : BudgetSeconds(job.spec);
  RunFigures figures;
  long seen = 0;  // of the schedule, in samples
  const auto on_window = [&](const Round& round, const Decision& decision, const Truth& truth) {
    if (interrupted) throw Interrupted();
    folder.AddRound(RoundJson(round, decision, truth));
    figures.last_batches = Batches(round);
    if (figures.first_batches.empty()) figures.first_batches = figures.last_batches;
    char note[128];
    std::snprintf(note, sizeof note,
                  "accuracy %.4f  loss %.3f  global batch %.0f  %.1f s on the job's clock",
                  truth.held_out_accuracy, truth.held_out_loss, round.GlobalBatch(), truth.seconds);
    const long now = std::lround(truth.progress * environment.planned_samples());
    bar->Advance(now - seen, note, truth.seconds / most_s);
    seen = now;
  };
  const bool full = flags.full || flags.epochs > 0;
  const double equal_time = full ? std::numeric_limits<double>::infinity() : flags.time_s;
  JobResult result = RunJob(environment, arbitrator, equal_time, on_window, reference);
  bar.reset();
  result.final_accuracy = environment.truth().held_out_accuracy;
  result.final_loss = environment.truth().held_out_loss;
  figures.seconds = environment.truth().seconds;
  figures.samples = environment.samples_seen();
  figures.iteration_ms = 1e3 * figures.seconds / std::max(1.0, result.windows * flags.window);
  const nlohmann::json summary = SummaryJson(flags, job, result, figures);
  FinishRun(flags, job, folder, summary);
}

void RunVirtual(const TrainFlags& flags, const TrainJob& job) {
  SetThreads(flags.threads);
  const std::string& dataset = job.spec.workload.model.dataset;
  auto data = std::make_shared<const Dataset>(
      LoadDataset(dataset, flags.data.empty() ? DatasetFolder(dataset) : flags.data));
  VirtualClusterOptions options;
  options.held_out_samples = flags.held_out;
  const auto cluster = MakeVirtualCluster(job.spec, std::move(data), options);
  RunEnvironment(flags, job, *cluster, nullptr);
}

void RunSimulated(const TrainFlags& flags, const TrainJob& job) {
  const Task task = MakeTask(job.spec, LoadPools({job.spec}, FashionMnistFolder()));
  RunEnvironment(flags, job, *task.MakeEnvironment(), &task.reference);
}

void CheckElastic(const TrainFlags& flags, const TrainJob& job) {
  if (!job.elastic &&
      (flags.min_workers > 1 || flags.max_workers > 0 || flags.max_restarts > 0 || flags.join))
    throw InputError(
        "--min-workers, --max-workers, --max-restarts and --join are for --elastic jobs");
  if (flags.min_workers > job.spec.workers)
    throw InputError::OutOfRange("--min-workers", flags.min_workers,
                                 "at most the job's " + std::to_string(job.spec.workers));
  if (flags.join && (job.folder.empty() || flags.resume))
    throw InputError("--join needs the --run folder of a job that is under way, without --resume");
  if (flags.join && !fs::exists(MembersFile(job)))
    throw InputError("no elastic job is under way in " + job.folder.string());
  if (flags.max_workers == 0) return;
  if (flags.max_workers < job.spec.workers)
    throw InputError::OutOfRange("--max-workers", flags.max_workers,
                                 "at least the job's " + std::to_string(job.spec.workers));
  if (!flags.cluster.empty())
    throw InputError("--max-workers is for jobs without --cluster, which says who comes and goes");
  if (!flags.advisor.address.empty())
    throw InputError("--max-workers is for jobs without --advisor, which waits for all workers");
}

void Train(const TrainFlags& flags) {
  if (flags.resume && (flags.backend != "live" || flags.no_record))
    throw InputError(
        "--resume is for --backend live with a run folder: others leave no checkpoint");
  if (flags.elastic && flags.backend != "live")
    throw InputError("--elastic is for --backend live: the other backends lose no ranks");
  const TrainJob job = MakeJob(flags);
  CheckElastic(flags, job);
  const RankPlace place = OwnPlace(flags);
  const bool joins = job.elastic && (flags.join || place.restarts > 0);  // the run under way
  FolderLock lock;
  if (!job.folder.empty() && !joins && place.rank == 0 && !lock.Take(job.folder))
    throw InputError(job.folder.string() + " holds a run that is under way: name another --run" +
                     (job.elastic ? ", or --join it" : ""));
  if (!flags.resume && !job.folder.empty() && !joins) RequireNothingUnfinished(job.folder);
  // Of launched ranks the launcher shows the job.
  const bool shows = !flags.dashboard.address.empty() && place.size == 1;
  if (shows && job.folder.empty())
    throw InputError("--dashboard shows what the run records: leave --no-record out");
  const ShownFolder shown(shows ? flags.dashboard : DashboardFlags{}, flags.advisor.tls, job.folder,
                          flags.json);
  if (flags.backend == "sim") return RunSimulated(flags, job);
  if (flags.backend == "virtual") return RunVirtual(flags, job);
  if (place.size == 1 && job.spec.workers > 1 && !flags.join) {
    lock = {};  // the first rank takes it
    return LaunchRanks(flags, job);
  }
  RunLiveRank(flags, job);
}

// What belongs to one run.
void AddRunFlags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--policy", flags.policy,
                  "a rule (docs/rules.md), a shipped policy or a policy file")
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "of weights, order of samples, jitter and events")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command.add_option("--run", flags.run, "folder of what the run leaves; default: runs/<job>");
  command.add_flag("--no-record", flags.no_record, "leave nothing");
  command.add_flag("--compared", flags.compared, "one run of dynamix compare")->group("");
  command.add_flag("--full", flags.full,
                   "do not end at the target: go on to the schedule's end (live) or the budget");
  command.add_flag("--resume", flags.resume, "live: go on from the run folder's checkpoint");
  command.add_flag("--allow-changed", flags.allow_changed,
                   "live: resume also when the workload's settings are not the checkpoint's");
  command.add_flag("--json", flags.json, "one JSON object on stdout instead of a table");
}

void AddJobFlags(CLI::App& command, TrainFlags& flags) {
  command.add_option("--backend", flags.backend, "sim, virtual (real SGD, modelled clock) or live")
      ->check(CLI::IsMember({"sim", "virtual", "live"}))
      ->capture_default_str();
  command.add_option("--workload", flags.workload, "what is trained: a file, or one of workloads/")
      ->capture_default_str();
  command.add_option("--cluster", flags.cluster,
                     "on what: a file, or one of scenarios/; live ranks run on a testbed of it");
  command.add_option("--workers", flags.workers, "number of workers; default: the cluster's")
      ->check(CLI::Range(1, 4096));
  command.add_option("--window", flags.window, "iterations per window")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command.add_option("--data", flags.data,
                     "folder of the data set (docs/training.md says how to get each)");
}

void AddOverrides(CLI::App& command, TrainFlags& flags) {
  command.add_option("--model", flags.model,
                     "instead of the workload's; images: mlp, lenet, cnn, vgg11, vgg16, vgg19, "
                     "resnet18, resnet34, resnet50; text: transformer, transformer4");
  command.add_option("--width", flags.width, "factor on the model's channel counts")
      ->check(CLI::Range(1e-3, 8.0));
  command.add_option("--rule", flags.rule, "learning-rate rule: none, linear, sqrt, adascale");
  command.add_option("--clock", flags.clock,
                     "what moves the schedule on: samples, or steps, each as long as the rule's "
                     "factor on the learning rate (docs/training.md)");
  command.add_option("--learning-rate", flags.learning_rate, "at the base batch")
      ->check(CLI::Range(1e-9, 1e3));
  command.add_option("--samples", flags.planned_samples, "planned samples: the schedule's length")
      ->check(CLI::Range(1.0, 1e15));
  command.add_option("--target", flags.target_accuracy, "held-out accuracy that ends the job")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--target-loss", flags.target_loss, "held-out loss that ends the job, instead")
      ->check(CLI::Range(0.0, 1e9));
  command.add_option("--time", flags.time_s, "run so many seconds of the job's clock instead")
      ->check(CLI::Range(1e-3, 1e9));
  command
      .add_option("--epochs", flags.epochs,
                  "run so many passes over the data set instead; with --clock steps as long a "
                  "schedule, which a large batch takes more passes for")
      ->check(CLI::Range(1e-3, 1e9));
  command
      .add_option(
          "--held-out", flags.held_out,
          "samples that loss and accuracy are measured on, the first so many; default: 10000 "
          "images or 625 sequences live, 2000 or 125 virtual (easier by one or two points on "
          "Fashion-MNIST)")
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("--start-batch", flags.start_batch, "local batch at the start")
      ->check(CLI::Range(1, 1 << 20));
}

void AddLiveFlags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--micro-batch", flags.micro_batch, "live: samples of one forward pass at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "threads of libtorch per process")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--evaluate-every", flags.evaluate_windows, "live: windows per evaluation")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--checkpoint-every", flags.checkpoint_windows, "live: windows per checkpoint")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--timeout", flags.timeout_s, "live: seconds until a silent rank counts as lost")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command
      .add_option(
          "--monitor", flags.monitor,
          "live: best source of network metrics: ebpf, inet_diag, own_sockets; or none, and no "
          "host metrics either")
      ->check(CLI::IsMember({"ebpf", "inet_diag", "own_sockets", "none"}))
      ->capture_default_str();
  command.add_flag_callback(
      "--no-guard", [&flags] { flags.guard = false; }, "never fall back to the start batches");
  command.add_option("--interface", flags.interface, "live: network interface of the exchange");
  command
      .add_option("--testbed", flags.testbed,
                  "live with --cluster: pacing (emulated network, devices slowed by sleeping), "
                  "quota (devices slowed by CPU quota) or plain (no network, pacing)")
      ->check(CLI::IsMember({"pacing", "quota", "plain"}))
      ->capture_default_str();
}

void AddElasticFlags(CLI::App& command, TrainFlags& flags) {
  command.add_flag("--elastic", flags.elastic,
                   "live: go on without ranks that are lost, and take in those that come back; "
                   "always with a --cluster whose workers leave or join");
  command
      .add_option("--min-workers", flags.min_workers,
                  "live, elastic: fewer wait for others, for twice the timeout, and then end")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option(
          "--max-workers", flags.max_workers,
          "live, elastic: workers that --join may make the team so large; default: --workers")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--join", flags.join,
                   "live, elastic: the command of a job that is under way, with this flag, is one "
                   "more worker of it, also on another machine that shares the --run folder");
  command
      .add_option("--max-restarts", flags.max_restarts,
                  "live, elastic: start each lost rank again so often, after a pause that doubles")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
}

}  // namespace

void AddSharedFlags(CLI::App& command, TrainFlags& flags) {
  AddJobFlags(command, flags);
  AddOverrides(command, flags);
  AddLiveFlags(command, flags);
}

void AddTrainCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train one job under one policy");
  AddRunFlags(*command, *flags);
  AddSharedFlags(*command, *flags);
  AddElasticFlags(*command, *flags);
  AddDashboardFlags(*command, flags->dashboard);
  AddAdvisorFlags(*command, flags->advisor);
  command->footer(
      "Examples:\n"
      "  dynamix train --cluster heterogeneous_4x --workers 8 --policy balanced\n"
      "  dynamix train --backend live --workers 2 --policy goodput --run runs/mine\n"
      "  dynamix train --backend live --cluster live/demo --policy balanced\n"
      "  dynamix train --backend live --workers 4 --elastic --max-restarts 3 --run runs/mine\n"
      "  dynamix train --backend live --workers 4 --elastic --max-workers 6 --run runs/mine "
      "--join\n"
      "  dynamix train --backend live --workers 2 --advisor 127.0.0.1:7040\n"
      "  dynamix launch -n 2 -- dynamix train --backend live --run runs/mine --resume");
  command->callback([flags] { Train(*flags); });
}

}  // namespace dynamix
