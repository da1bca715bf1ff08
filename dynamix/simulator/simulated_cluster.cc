// One window of the simulated cluster:
//
//   1. who is present, and their batches, made legal; the first batch over a worker's memory costs
//      that iteration again, lowers the worker's bound, and goes on in micro batches
//      (docs/training.md)
//   2. the engine trains `window_iterations` steps, the cluster says how long they took
//   3. truth, when it is due: held-out loss and accuracy, smoothed over time with weight
//      1 - exp(-time since the last evaluation / (0.01 nominal_seconds))
//   4. reports, some of them late
#include "dynamix/simulator/simulated_cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr double kSmoothing = 0.01;  // of nominal_seconds
// Streams of the seed.
constexpr std::uint64_t kClusterStream = 1, kEventStream = 2, kReportStream = 3;

}  // namespace

SimulatedCluster::SimulatedCluster(const JobSpec& job, std::unique_ptr<Convergence> engine)
    : optimizer_(job.workload.optimizer),
      late_reports_(job.scenario.late_reports),
      window_iterations_(job.window),
      seed_(job.seed),
      initial_engine_(std::move(engine)),
      cluster_(job.scenario, job.workload.cost, job.workers),
      rng_(job.seed) {
  RequireInRange("workers", job.workers, 1, 4096);
  RequireInRange("window_iterations", job.window, 1, 100000);
  const Scenario& scenario = job.scenario;
  start_entries_.resize(job.workers);
  const double equal_part = optimizer_.base_batch / job.workers;
  for (RoundEntry& entry : start_entries_) {
    entry.bounds = scenario.bounds;
    const double wanted = scenario.start_batch > 0 ? scenario.start_batch : equal_part;
    entry.start_batch = entry.batch = ClampBatch(wanted, 0, entry.bounds);
  }
  entries_ = start_entries_;
  nominal_seconds_ = QuietSeconds();
  const double unit_s = scenario.clock == ScenarioClock::kRun ? nominal_seconds_ : 1;
  time_budget_s_ = scenario.time_budget * unit_s;
  sample_budget_ = scenario.sample_budget;
  cluster_.SetEvents(ResolveEvents(scenario, cluster_.nodes(), unit_s, 2 * scenario.time_budget,
                                   Rng(job.seed).Fork(kEventStream).Next()));
}

SimulatedCluster::SimulatedCluster(const SimulatedCluster& other)
    : optimizer_(other.optimizer_),
      late_reports_(other.late_reports_),
      window_iterations_(other.window_iterations_),
      seed_(other.seed_),
      initial_engine_(other.initial_engine_->Clone()),
      engine_(other.engine_ ? other.engine_->Clone() : nullptr),
      cluster_(other.cluster_),
      start_entries_(other.start_entries_),
      entries_(other.entries_),
      nominal_seconds_(other.nominal_seconds_),
      time_budget_s_(other.time_budget_s_),
      sample_budget_(other.sample_budget_),
      evaluate_every_(other.evaluate_every_),
      limits_(other.limits_),
      rng_(other.rng_),
      window_(other.window_),
      samples_seen_(other.samples_seen_),
      since_evaluation_s_(other.since_evaluation_s_),
      initial_loss_(other.initial_loss_),
      batches_(other.batches_),
      truth_(other.truth_) {}

std::unique_ptr<SimulatedCluster> SimulatedCluster::Clone() const {
  return std::make_unique<SimulatedCluster>(*this);
}

double SimulatedCluster::QuietSeconds() const {
  const std::vector<int> sizes = BalancedSizes(optimizer_.base_batch);
  double slowest_ms = 0, global_batch = 0;
  for (int i = 0; i < workers(); ++i) {
    slowest_ms = std::max(slowest_ms, cluster_.ComputeMs(i, sizes[i]));
    global_batch += sizes[i];
  }
  const double iteration_s = 1e-3 * (slowest_ms + cluster_.ExposedMs(slowest_ms));
  return optimizer_.planned_samples / global_batch * iteration_s;
}

std::vector<int> SimulatedCluster::BalancedSizes(double global_batch) const {
  std::vector<BatchBounds> bounds;
  for (int i = 0; i < workers(); ++i) {
    bounds.push_back(entries_[i].bounds);
    bounds.back().max = LoweredMax(i);
  }
  const std::vector<double> parts = cluster_.Balance(global_batch, bounds);
  std::vector<int> sizes(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) sizes[i] = ClampBatch(parts[i], 0, bounds[i]);
  return sizes;
}

int SimulatedCluster::LoweredMax(int worker) const {
  const BatchBounds& bounds = entries_[worker].bounds;
  return std::max(bounds.lowest(), std::min(bounds.max, cluster_.MemoryBatch(worker)));
}

Round SimulatedCluster::Opening() const {
  Round round = MakeRound(start_entries_);
  Cluster begun = cluster_;
  begun.Restart(Rng(seed_).Fork(kClusterStream));
  for (int i = 0; i < workers(); ++i) round.entries[i].active = begun.present(i);
  return round;
}

Round SimulatedCluster::Start(const std::vector<int>& sizes) {
  engine_ = initial_engine_->Clone();
  rng_ = Rng(seed_).Fork(kReportStream);
  cluster_.Restart(Rng(seed_).Fork(kClusterStream));
  entries_ = start_entries_;
  window_ = 0;
  samples_seen_ = since_evaluation_s_ = 0;
  truth_ = {};
  truth_.held_out_loss = initial_loss_ = engine_->HeldOutLoss();
  truth_.held_out_accuracy = engine_->HeldOutAccuracy();
  return Step(sizes);
}

TrainingReport SimulatedCluster::RunWindow(const std::vector<int>& sizes) {
  DYNAMIX_CHECK(engine_ != nullptr, "Start comes before Step");
  DYNAMIX_CHECK(static_cast<int>(sizes.size()) == workers(), "one size per worker");
  TakeSizes(sizes);
  const double lost_ms = RunOutOfMemory();
  const WindowTiming& timing = cluster_.RunWindow(batches_, window_iterations_);
  const TrainingReport training = engine_->Run(batches_, window_iterations_);
  for (const int batch : batches_) samples_seen_ += static_cast<double>(batch) * window_iterations_;
  UpdateTruth(timing.seconds + 1e-3 * lost_ms);
  return training;
}

Round SimulatedCluster::Step(const std::vector<int>& sizes) {
  const TrainingReport training = RunWindow(sizes);
  Round round = MakeRound(training);
  BeginWindow();
  for (int i = 0; i < workers(); ++i) round.entries[i].active = entries_[i].active;
  return round;
}

void SimulatedCluster::Advance(const std::vector<int>& sizes) {
  RunWindow(sizes);
  BeginWindow();
}

void SimulatedCluster::BeginWindow() {
  ++window_;
  cluster_.BeginWindow(truth_.seconds);
  for (int i = 0; i < workers(); ++i) entries_[i].active = cluster_.present(i);
}

void SimulatedCluster::TakeSizes(const std::vector<int>& sizes) {
  batches_.assign(sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    RoundEntry& entry = entries_[i];
    if (!cluster_.present(static_cast<int>(i))) continue;
    entry.batch = ClampBatch(sizes[i], entry.batch, entry.bounds);
    batches_[i] = entry.batch;
  }
}

double SimulatedCluster::RunOutOfMemory() {
  double lost_ms = 0;
  for (int i = 0; i < workers(); ++i) {
    if (batches_[i] <= cluster_.MemoryBatch(i)) continue;
    const int lowered = LoweredMax(i);
    if (lowered == entries_[i].bounds.max) continue;  // known already
    entries_[i].bounds.max = lowered;
    lost_ms = std::max(lost_ms, cluster_.ComputeMs(i, batches_[i]));
  }
  return lost_ms;
}

void SimulatedCluster::UpdateTruth(double window_seconds) {
  truth_.window_seconds = window_seconds;
  truth_.seconds += window_seconds;
  truth_.samples = samples_seen_;
  truth_.progress = engine_->Progress();
  since_evaluation_s_ += window_seconds;
  if (since_evaluation_s_ >= evaluate_every_ * nominal_seconds_) {
    const double weight = 1 - std::exp(-since_evaluation_s_ / (kSmoothing * nominal_seconds_));
    truth_.held_out_loss += weight * (engine_->HeldOutLoss() - truth_.held_out_loss);
    truth_.held_out_accuracy += weight * (engine_->HeldOutAccuracy() - truth_.held_out_accuracy);
    since_evaluation_s_ = 0;
  }
  const bool good_loss = limits_.target_loss > 0 && truth_.held_out_loss <= limits_.target_loss;
  const bool good_accuracy =
      limits_.target_accuracy > 0 && truth_.held_out_accuracy >= limits_.target_accuracy;
  truth_.reached = truth_.reached || good_loss || good_accuracy;
  truth_.budget_seconds = limits_.seconds > 0 ? limits_.seconds : time_budget_s_;
  truth_.out_of_time = truth_.seconds >= truth_.budget_seconds || truth_.progress >= sample_budget_;
  truth_.schedule_ended = optimizer_.schedule != Schedule::kConstant && truth_.progress >= 1;
}

Round SimulatedCluster::MakeRound(const std::vector<RoundEntry>& entries) const {
  Round round{SettingsOf(optimizer_)};
  if (limits_.named_accuracy > 0) round.target_accuracy = limits_.named_accuracy;
  if (limits_.named_loss > 0) round.target_loss = limits_.named_loss;
  round.entries = entries;
  return round;
}

Round SimulatedCluster::MakeRound(const TrainingReport& training) {
  Round round = MakeRound(entries_);
  round.index = window_;
  round.seconds = truth_.window_seconds;
  for (int i = 0; i < workers(); ++i) {
    if (batches_[i] == 0) continue;
    if (late_reports_ > 0 && rng_.Uniform() < late_reports_) continue;
    Report& report = round.entries[i].report.emplace(cluster_.MeasureWorker(i));
    report.window = window_;
    report.training = training;
  }
  return round;
}

// Both only for the clock: the cluster never runs, so it needs no engine.
std::vector<TimedEvent> EventsOf(const JobSpec& job) {
  return SimulatedCluster(job, nullptr).events();
}

double BudgetSeconds(const JobSpec& job) {
  return SimulatedCluster(job, nullptr).time_budget_seconds();
}

}  // namespace dynamix
