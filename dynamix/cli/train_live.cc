// dynamix train --backend live: one rank, wired from the rooms.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/progress.h"
#include "dynamix/cli/table.h"
#include "dynamix/cli/train_flags.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/simulator/cluster.h"
#include "dynamix/simulator/simulated_cluster.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/live_job.h"

namespace dynamix {
namespace {

// Slows a rank down to its node of the scenario, events included.
class Pace {
 public:
  Pace(const TrainFlags& flags, const TrainJob& job, int rank)
      : cluster_(job.scenario, job.workload.cost, job.workers), rank_(rank) {
    // Only for its events, on the scenario's clock: it never runs.
    const SimulatedCluster clock(job.scenario, job.workload, job.workers, nullptr, flags.seed,
                                 flags.window);
    cluster_.SetEvents(clock.events());
  }
  double operator()(int batch, double seconds) {
    cluster_.BeginWindow(seconds);
    return cluster_.ComputeMs(rank_, batch);
  }

 private:
  Cluster cluster_;
  int rank_;
};

Monitor StartMonitor(const TrainFlags& flags) {
  MonitorOptions options;
  options.best_tier = flags.monitor == "ebpf"          ? NetworkTier::kEbpf
                      : flags.monitor == "inet_diag"   ? NetworkTier::kInetDiag
                      : flags.monitor == "own_sockets" ? NetworkTier::kOwnSockets
                                                       : NetworkTier::kNone;
  return Monitor::Start(options);
}

template <typename T>
T OrThrow(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(result).value();
}

// Everything one rank owns, in order of construction.
struct LiveRank {
  LiveRank(const TrainFlags& flags, const TrainJob& job);

  WorkerOptions Options(const TrainFlags& flags, const TrainJob& job);
  LiveJobOptions JobOptions(const TrainFlags& flags, const TrainJob& job) const;
  void Record(const Round& round, const std::vector<int>& sizes);
  void Show(Progress& progress);

  Monitor monitor;  // before the group opens its sockets
  std::unique_ptr<WorkerGroup> group;
  std::unique_ptr<Policy> policy;
  Arbitrator arbitrator;
  InProcessAdvisor advisor;
  Classifier classifier;
  std::unique_ptr<Pace> pace;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<LiveJob> live;
  std::unique_ptr<RunFolder> folder;  // rank 0 only
  std::vector<int> previous;
  double shown_samples = 0, shown_seconds = 0;
  double waited_ms = 0, worked_ms = 0;  // of all workers, since this process started
};

BatchReader MakeReader(const TrainFlags& flags, const TrainJob& job) {
  const std::string& dataset = job.workload.model.dataset;
  auto data = std::make_shared<const Dataset>(
      LoadDataset(dataset, flags.data.empty() ? DatasetFolder(dataset) : flags.data));
  const AugmentationOptions augmentation = UsualAugmentation(*data);
  return {std::move(data), augmentation, static_cast<std::uint64_t>(flags.seed)};
}

LiveRank::LiveRank(const TrainFlags& flags, const TrainJob& job)
    : monitor(StartMonitor(flags)),
      group(OrThrow(
          WorkerGroup::Connect(ReadRankPlace([](const char* name) { return std::getenv(name); }),
                               {.timeout_s = flags.timeout_s, .interface = flags.interface}))),
      policy(job.policy.make()),
      arbitrator(*policy, job.policy.actions, Rng(flags.seed)),
      advisor(
          *group, job.workload.optimizer,
          [this](const Round& round) { return arbitrator.Step(round); },
          [this](const Round& round, const std::vector<int>& sizes) { Record(round, sizes); },
          job.workload.target.accuracy > 0 ? job.workload.target.accuracy : kMissing),
      classifier(job.workload.model, MakeReader(flags, job), flags.seed) {
  worker = OrThrow(Worker::Start(*group, TrainableOf(classifier), Options(flags, job), &advisor));
  live = std::make_unique<LiveJob>(*group, *worker, classifier, &advisor, JobOptions(flags, job));
  OrThrow(live->Start());
  if (group->rank() == 0)
    folder = std::make_unique<RunFolder>(job.folder, job.config, worker->windows());
}

WorkerOptions LiveRank::Options(const TrainFlags& flags, const TrainJob& job) {
  WorkerOptions options;
  options.optimizer = job.workload.optimizer;
  options.seed = flags.seed;
  options.bounds = job.scenario.bounds;
  const double equal_part = job.workload.optimizer.base_batch / job.workers;
  options.start_batch = ClampBatch(
      job.scenario.start_batch > 0 ? job.scenario.start_batch : equal_part, 0, job.scenario.bounds);
  options.micro_batch = flags.micro_batch;
  options.window_iterations = flags.window;
  options.measure = [this](Report& report) {
    const MonitorWindow window = monitor.ReadWindow();
    report.network = window.NetworkPart();
    report.host = window.HostPart();
  };
  if (flags.cluster.empty()) return options;
  pace = std::make_unique<Pace>(flags, job, group->rank());
  options.least_compute_ms = [this](int batch) {
    return (*pace)(batch, live ? live->state().seconds : 0);
  };
  return options;
}

LiveJobOptions LiveRank::JobOptions(const TrainFlags& flags, const TrainJob& job) const {
  LiveJobOptions options;
  options.name = job.name;
  options.planned_samples = job.workload.optimizer.planned_samples;
  options.target_accuracy = job.workload.target.accuracy;
  options.target_loss = job.workload.target.loss;
  options.stop_at_target = !flags.full;
  options.evaluate_windows = flags.evaluate_windows;
  options.checkpoint_windows = flags.checkpoint_windows;
  options.folder = job.folder;
  options.resume = flags.resume;
  return options;
}

void LiveRank::Record(const Round& round, const std::vector<int>& sizes) {
  const LiveJobState& state = live->state();
  Truth truth;
  truth.seconds = state.seconds;
  truth.window_seconds = round.seconds;
  truth.held_out_loss = state.loss;
  truth.held_out_accuracy = state.accuracy;
  std::vector<int> batches;
  for (const RoundEntry& entry : round.entries) batches.push_back(entry.batch);
  if (previous.empty()) previous = batches;
  folder->AddRound(RoundJson(round, arbitrator, truth, sizes, previous));
  previous = batches;
  for (const RoundEntry& entry : round.entries) {
    waited_ms += entry.report->wait_ms * entry.report->iterations;
    worked_ms += entry.report->iteration_ms * entry.report->iterations;
  }
}

void LiveRank::Show(Progress& progress) {
  const LiveJobState& state = live->state();
  const double samples = state.samples - shown_samples, seconds = state.seconds - shown_seconds;
  std::string batches;
  for (const int batch : worker->batches())
    batches += (batches.empty() ? "" : ",") + std::to_string(batch);
  char note[128];
  std::snprintf(note, sizeof note, "accuracy %.4f  %.0f samples/s  batches %s", state.accuracy,
                seconds > 0 ? samples / seconds : 0.0, batches.c_str());
  progress.Advance(static_cast<long>(samples), note);
  shown_samples = state.samples;
  shown_seconds = state.seconds;
}

}  // namespace

void RunLiveRank(const TrainFlags& flags, const TrainJob& job) {
  SetThreads(flags.threads);
  const InterruptFlag interrupted;
  LiveRank rank(flags, job);
  const bool first = rank.group->rank() == 0;
  {
    Progress progress("train", static_cast<long>(job.workload.optimizer.planned_samples),
                      flags.json || !first);
    rank.Show(progress);
    OrThrow(rank.live->Run([&] { return static_cast<bool>(interrupted); },
                           [&] { rank.Show(progress); }));
  }
  const LiveJobState& state = rank.live->state();
  if (state.stopped) {
    if (first && !job.folder.empty())
      std::fprintf(stderr, "saved to %s; the same command with --resume goes on from there\n",
                   job.folder.c_str());
    throw Interrupted();
  }
  if (!first) return;
  JobResult result;
  result.workers = job.workers;
  result.reached = state.reached;
  result.time_to_target_s = state.reached ? state.time_to_target_s : state.seconds;
  result.final_accuracy = state.accuracy;
  result.windows = static_cast<double>(rank.worker->windows());
  result.mean_wait_share = rank.worked_ms > 0 ? rank.waited_ms / rank.worked_ms : 0;
  for (const int batch : rank.worker->batches()) result.last_global_batch += batch;
  const nlohmann::json summary = SummaryJson(flags, job, result, state.seconds);
  rank.folder->Finish(summary);
  PrintSummary(flags, job, summary);
}

}  // namespace dynamix
