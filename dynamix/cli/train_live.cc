// dynamix train --backend live: one rank, wired from the rooms.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/cli/train_flags.h"
#include "dynamix/cli/train_settings.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/folder_lock.h"
#include "dynamix/host/job_clock.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/rpc/remote_advisor.h"
#include "dynamix/simulator/simulated_cluster.h"
#include "dynamix/testbed/pace.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/live_job.h"

namespace dynamix {
namespace {

Monitor StartMonitor(const TrainFlags& flags) {
  MonitorOptions options;
  options.best_tier = ParseNetworkTier("--monitor", flags.monitor);
  return Monitor::Start(options);
}

// Adds its lifetime to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;  // the caller's, which outlives its block
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The interface a testbed put this rank on; PyTorch reads the same variable.
std::string ExchangeInterface(const TrainFlags& flags) {
  const char* given = std::getenv("GLOO_SOCKET_IFNAME");
  return flags.interface.empty() && given != nullptr ? given : flags.interface;
}

// The testbed's view of the job's clock; nothing outside a testbed.
std::optional<JobClock> OpenJobClock() {
  const char* path = std::getenv("DYNAMIX_JOB_CLOCK");
  if (path == nullptr || *path == '\0') return std::nullopt;
  Result<JobClock> clock = JobClock::Open(path);
  if (clock) return std::move(clock).value();
  std::fprintf(stderr, "network events will not happen: %s\n", clock.error().c_str());
  return std::nullopt;
}

// It holds the job's key, so its folder is for its owner only.
std::string MakeMembersFolder(const TrainFlags& flags, const TrainJob& job) {
  const std::filesystem::path file = MembersFile(job);
  if (file.empty() || flags.join) return file;
  std::filesystem::create_directories(file.parent_path());
  std::filesystem::permissions(file.parent_path(), std::filesystem::perms::owner_all);
  return file;
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
  std::unique_ptr<Advisor> MakeAdvisor(const TrainFlags& flags, const TrainJob& job);
  std::vector<int> Decide(const Round& round);
  void Record(const Round& round);
  RunFolder& Folder();
  void Add(const Report& report);
  void Show(ProgressBar& bar);
  nlohmann::json Summary(const TrainFlags& flags, const TrainJob& job);

  Monitor monitor;  // before the group opens its sockets
  std::unique_ptr<WorkerGroup> group;
  Arbitrator arbitrator;
  Decision decision;  // the last one
  std::unique_ptr<Advisor> advisor;
  Classifier classifier;
  std::unique_ptr<Pace> pace;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<LiveJob> live;
  const TrainJob& wanted;             // the caller's
  std::unique_ptr<RunFolder> folder;  // of those that are or were rank 0
  FolderLock lock;                    // of one that became rank 0
  RunFigures figures;
  double shown_samples = 0, shown_seconds = 0, samples_per_s = 0;
  long shown_position = 0;   // of the schedule, in samples
  double most_s = 0;         // the run ends then; 0: no limit
  std::string told;          // of the job's warnings
  std::vector<int> members;  // last seen
  int micro_batch = 0;       // last seen
  // Of all workers, since this process started.
  double waited_ms = 0, worked_ms = 0, computed_ms = 0, expected_ms = 0;
  double overhead_s = 0;  // rank 0
};

BatchReader MakeReader(const TrainFlags& flags, const TrainJob& job) {
  const std::string& dataset = job.spec.workload.model.dataset;
  auto data = std::make_shared<const Dataset>(
      LoadDataset(dataset, flags.data.empty() ? DatasetFolder(dataset) : flags.data));
  const AugmentationOptions augmentation = UsualAugmentation(*data);
  return {std::move(data), augmentation, static_cast<std::uint64_t>(flags.seed)};
}

LiveRank::LiveRank(const TrainFlags& flags, const TrainJob& job)
    : monitor(StartMonitor(flags)),
      group(OrThrow(
          WorkerGroup::Connect(OwnPlace(flags), {.timeout_s = flags.timeout_s,
                                                 .interface = ExchangeInterface(flags),
                                                 .elastic = job.elastic,
                                                 .least_ranks = flags.min_workers,
                                                 .most_ranks = flags.max_workers,
                                                 .settings = SharedSettings(flags, job),
                                                 .members = MakeMembersFolder(flags, job)}))),
      arbitrator(job.policy, {.guard = {.on = flags.guard}, .seed = job.spec.seed}),
      advisor(MakeAdvisor(flags, job)),
      classifier(job.spec.workload.model, MakeReader(flags, job), flags.seed),
      wanted(job) {
  worker =
      OrThrow(Worker::Start(*group, TrainableOf(classifier), Options(flags, job), advisor.get()));
  live =
      std::make_unique<LiveJob>(*group, *worker, classifier, advisor.get(), JobOptions(flags, job));
  OrThrow(live->Start());
  shown_samples = live->state().samples;
  shown_position =
      std::lround(live->state().progress * wanted.spec.workload.optimizer.planned_samples);
  shown_seconds = live->state().seconds;
  most_s = JobOptions(flags, job).most_seconds;
  micro_batch = worker->micro_batch();
  if (!worker->joined()) members = group->members();
  if (group->rank() == 0) Folder();
}

// Rank 0 keeps the record. A rank that becomes rank 0 goes on where the one before it was.
RunFolder& LiveRank::Folder() {
  if (!folder) {
    folder =
        std::make_unique<RunFolder>(wanted.folder, wanted.config, worker->windows(), WarnOfLoss);
    // One that was stopped may still have it; the first one took it when the job started.
    if (!wanted.folder.empty()) (void)lock.Take(wanted.folder);
  }
  return *folder;
}

// One number for this training, drawn by rank 0. Doubles carry 53 bits exactly.
std::uint64_t AgreeOnRun(WorkerGroup& group) {
  std::random_device device;
  double run = static_cast<double>(((std::uint64_t{device()} << 21) ^ device()) | 1);
  OrThrow(group.Broadcast(std::span<double>(&run, 1)));
  return static_cast<std::uint64_t>(run);
}

// With --advisor the arbitrator is another process, which also keeps the record of rounds.
std::unique_ptr<Advisor> LiveRank::MakeAdvisor(const TrainFlags& flags, const TrainJob& job) {
  const JobSettings settings = SettingsOf(job.spec.workload);
  if (flags.advisor.address.empty())
    return std::make_unique<InProcessAdvisor>(
        *group, settings,
        [this](const Round& round) {
          const Stopwatch deciding(overhead_s);
          return Decide(round);
        },
        [this](const Round& round, const std::vector<int>&) {
          const Stopwatch recording(overhead_s);
          Record(round);
        },
        [this](Memory& memory) { arbitrator.VisitMemory(memory); },
        [this](const Round& round) { return arbitrator.Open(round); });
  RemoteAdvisorOptions options = MakeAdvisorOptions(flags.advisor);
  if (options.job.empty()) options.job = job.name;
  options.rank = group->slot();
  options.size = group->slots();
  options.run = group->elastic() ? group->job() : AgreeOnRun(*group);
  options.settings = settings;
  options.log = [rank = options.rank](const std::string& text) {
    spdlog::warn("rank {}: {}", rank, text);
  };
  return std::make_unique<RemoteAdvisor>(options);
}

WorkerOptions LiveRank::Options(const TrainFlags& flags, const TrainJob& job) {
  WorkerOptions options;
  options.optimizer = job.spec.workload.optimizer;
  options.seed = flags.seed;
  options.bounds = job.spec.scenario.bounds;
  const double equal_part = job.spec.workload.optimizer.base_batch / job.spec.workers;
  options.start_batch =
      ClampBatch(job.spec.scenario.start_batch > 0 ? job.spec.scenario.start_batch : equal_part, 0,
                 job.spec.scenario.bounds);
  options.micro_batch = flags.micro_batch;
  options.window_iterations = flags.window;
  if (flags.monitor != "none") {
    options.measure = [this](Report& report) {
      const Stopwatch measuring(overhead_s);
      const MonitorWindow window = monitor.ReadWindow();
      report.network = window.NetworkPart();
      report.host = window.HostPart();
    };
  }
  if (flags.cluster.empty() || flags.testbed == "quota") return options;
  pace = std::make_unique<Pace>(job.spec, group->slot());
  options.least_compute_ms = [this](int batch) {
    return pace->NextMs(batch, live ? live->state().seconds : 0);
  };
  return options;
}

LiveJobOptions LiveRank::JobOptions(const TrainFlags& flags, const TrainJob& job) const {
  LiveJobOptions options;
  options.name = job.training;
  options.target_accuracy = job.spec.workload.target.accuracy;
  options.target_loss = job.spec.workload.target.loss;
  options.stop_at_target = !flags.full && flags.time_s == 0 && flags.epochs == 0;
  options.most_seconds = flags.time_s;
  if (options.stop_at_target && !flags.cluster.empty())
    options.most_seconds = BudgetSeconds(job.spec);
  options.evaluate_windows = flags.evaluate_windows;
  options.held_out_samples = flags.held_out;
  options.checkpoint_windows = flags.checkpoint_windows;
  options.folder = job.folder;
  options.resume = flags.resume;
  options.settings = TrainingSettings(job.config);
  options.allow_changed = flags.allow_changed;
  return options;
}

std::vector<int> LiveRank::Decide(const Round& round) {
  const Guard::State before = decision.guard;
  decision = arbitrator.Step(round);
  // Advice is advice: a policy that fails costs the job its advice, not its training.
  if (!decision.failure.empty())
    spdlog::warn("no advice for window {}, batches stay: {}", round.index, decision.failure);
  if (decision.guard == Guard::State::kFallsBack && before != decision.guard)
    spdlog::warn("window {}: the job is slower under {} than at its start batches, back to them",
                 round.index, decision.policy);
  return decision.sizes;
}

void LiveRank::Record(const Round& round) {
  const LiveJobState& state = live->state();
  Truth truth;
  truth.seconds = state.seconds;
  truth.window_seconds = round.seconds;
  truth.held_out_loss = state.loss;
  truth.held_out_accuracy = state.accuracy;
  Folder().AddRound(RoundJson(round, decision, truth));
  for (const RoundEntry& entry : round.entries)
    if (entry.report) Add(*entry.report);
}

void LiveRank::Add(const Report& report) {
  if (figures.first_batches.empty()) figures.first_batches = worker->batches();
  waited_ms += report.wait_ms * report.iterations;
  worked_ms += report.iteration_ms * report.iterations;
  computed_ms += report.compute_ms;
  if (pace) expected_ms += pace->ExpectedMs(report.rank, report.local_batch);
}

void LiveRank::Show(ProgressBar& bar) {
  const LiveJobState& state = live->state();
  const double samples = state.samples - shown_samples, seconds = state.seconds - shown_seconds;
  if (seconds > 0) samples_per_s = samples / seconds;
  const std::vector<int>& sizes = worker->batches();
  std::string batches;
  if (sizes.size() <= 8) {
    for (const int batch : sizes) batches += (batches.empty() ? "" : ",") + std::to_string(batch);
  } else {
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    batches = std::to_string(*least) + " to " + std::to_string(*most);
  }
  char note[160];
  std::snprintf(note, sizeof note, "accuracy %.4f  loss %.3f  %.0f samples/s  batches %s",
                state.accuracy, state.loss, samples_per_s, batches.c_str());
  const long position =
      std::lround(state.progress * wanted.spec.workload.optimizer.planned_samples);
  bar.Advance(position - shown_position, note, most_s > 0 ? state.seconds / most_s : 0);
  shown_position = position;
  shown_samples = state.samples;
  shown_seconds = state.seconds;
  if (members != group->members()) {
    members = group->members();
    if (group->rank() != 0) {  // another one writes now
      folder.reset();
      lock = {};
    }
    std::string list;
    for (const int slot : members) list += (list.empty() ? "" : ", ") + std::to_string(slot);
    if (group->rank() == 0)
      spdlog::warn("the team is now {} of {} workers: {}", members.size(), group->slots(), list);
  }
  if (worker->micro_batch() < micro_batch) {
    micro_batch = worker->micro_batch();
    spdlog::warn("rank {} ran out of memory: passes of at most {} samples from now on, batch {}",
                 group->rank(), micro_batch, sizes[group->rank()]);
  }
  if (state.warning == told) return;
  told = state.warning;
  if (group->rank() == 0) spdlog::warn("{}", told);
}

nlohmann::json LiveRank::Summary(const TrainFlags& flags, const TrainJob& job) {
  const LiveJobState& state = live->state();
  JobResult result;
  result.workers = job.spec.workers;
  result.reached = state.reached;
  // A miss is booked with the whole budget, where there is one, however the run ended.
  const double missed_s = std::max(state.seconds, JobOptions(flags, job).most_seconds);
  result.time_to_target_s = state.reached ? state.time_to_target_s : missed_s;
  result.final_accuracy = state.accuracy;
  result.final_loss = state.loss;
  result.windows = static_cast<double>(worker->windows());
  result.mean_wait_share = worked_ms > 0 ? waited_ms / worked_ms : 0;
  for (const int batch : worker->batches()) result.last_global_batch += batch;
  figures.seconds = state.seconds;
  figures.samples = state.samples;
  const auto iterations = static_cast<double>(worker->iterations());
  figures.iteration_ms = iterations > 0 ? 1e3 * state.seconds / iterations : 0;
  figures.last_batches = worker->batches();
  // Of this process's part of the job; a resumed one has seconds from before.
  const double own_s = 1e-3 * worked_ms / job.spec.workers;
  if (own_s > 0) figures.overhead_share = overhead_s / own_s;
  if (expected_ms > 0) figures.pace_ratio = computed_ms / expected_ms;
  return SummaryJson(flags, job, result, figures);
}

// Whoever started elastic ranks believes the one that ends well, so they wait for the first one's
// word on the record.
constexpr double kFinished = 0, kRecordLost = 1, kFailed = 2;

void TellTheOthers(WorkerGroup& group, double word) {
  if (group.elastic()) (void)group.AllReduce(std::span<double>(&word, 1));
}

void EndAsTheFirst(WorkerGroup& group) {
  double word = 0;
  if (!group.elastic()) return;
  if (!group.AllReduce(std::span<double>(&word, 1)) || word == kFailed)
    throw std::runtime_error("the first rank did not finish");
  if (word == kRecordLost) throw RecordLost("the first rank could not keep the whole record");
}

}  // namespace

std::filesystem::path MembersFile(const TrainJob& job) {
  return job.elastic && !job.folder.empty() ? job.folder / "members" / "doors.json" : "";
}

void RunLiveRank(const TrainFlags& flags, const TrainJob& job) {
  SetThreads(flags.threads);
  const InterruptFlag interrupted;
  LiveRank rank(flags, job);
  // Which rank is the first may change while the job runs.
  const auto first = [&] { return rank.group->rank() == 0; };
  if (flags.join)
    spdlog::info("joined as worker {}: {} of at most {} are there", rank.group->slot(),
                 rank.group->size(), rank.group->slots());
  std::optional<JobClock> clock = OpenJobClock();
  {
    std::optional<ProgressBar> bar;
    bool drawn = false;
    const auto show = [&] {
      if (!bar || (first() && !drawn)) {
        drawn = first();
        bar.emplace("train", static_cast<long>(job.spec.workload.optimizer.planned_samples),
                    flags.json || !drawn, rank.shown_position);
      }
      rank.Show(*bar);
    };
    show();
    OrThrow(rank.live->Run(
        [&] {
          if (clock && first()) clock->Set(rank.live->state().seconds);
          // Whoever came by itself goes by itself: the others lose a rank, and go on.
          if (flags.join && interrupted) {
            std::fprintf(stderr, "left the job, which goes on without this worker\n");
            throw Interrupted();
          }
          return static_cast<bool>(interrupted);
        },
        [&] {
          show();
          // Of this rank only: the others' reports go elsewhere.
          if (!flags.advisor.address.empty()) rank.Add(rank.worker->report());
        }));
    show();
  }
  const LiveJobState& state = rank.live->state();
  if (state.stopped) {
    if (const std::string loss = first() ? rank.Folder().Loss() : ""; !loss.empty())
      std::fprintf(stderr, "%s\n", loss.c_str());
    if (first() && !job.folder.empty() && !flags.compared)
      std::fprintf(stderr, "saved to %s; the same command with --resume goes on from there\n",
                   job.folder.c_str());
    throw Interrupted();
  }
  if (!first()) return EndAsTheFirst(*rank.group);
  const nlohmann::json summary = rank.Summary(flags, job);
  if (!flags.json && summary["pace_ratio"].is_number() && summary["pace_ratio"] > 1.2)
    std::fprintf(stderr,
                 "this machine is too slow or too busy for this cluster: compute took %.2f times "
                 "as long as on its nodes\n",
                 summary["pace_ratio"].get<double>());
  try {
    FinishRun(flags, job, rank.Folder(), summary);
  } catch (const RecordLost&) {
    TellTheOthers(*rank.group, kRecordLost);
    throw;
  } catch (...) {
    TellTheOthers(*rank.group, kFailed);
    throw;
  }
  TellTheOthers(*rank.group, kFinished);
}

}  // namespace dynamix
