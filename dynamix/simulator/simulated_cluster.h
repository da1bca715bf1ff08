// SimulatedCluster: an Environment made of a scenario, a workload and a convergence engine.
//
// Time comes from the cluster model, loss and accuracy from the engine; reports look like a live
// worker's. Not thread-safe; deterministic from its seed. Fails only at construction (InputError
// from the descriptions).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/core/environment.h"
#include "dynamix/job/job_spec.h"
#include "dynamix/simulator/cluster.h"
#include "dynamix/simulator/convergence.h"

namespace dynamix {

// What ends a job. Losses and accuracies compared with it are the smoothed ones of Truth.
struct JobLimits {
  double target_loss = 0;      // 0: none
  double target_accuracy = 0;  // 0: none
  double seconds = 0;          // 0: the scenario's time_budget
  // The target as a user would name it to the policy, at most one; 0: not named. Ends nothing.
  double named_accuracy = 0, named_loss = 0;
};

class SimulatedCluster : public Environment {
 public:
  // `engine` is kept as it is and cloned by every Start.
  SimulatedCluster(const JobSpec& job, std::unique_ptr<Convergence> engine);
  SimulatedCluster(const SimulatedCluster& other);
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  Round Opening() const override;
  Round Start(const std::vector<int>& sizes) override;
  Round Step(const std::vector<int>& sizes) override;
  // Step without measuring: the same truth, no reports. For references and hindsight.
  void Advance(const std::vector<int>& sizes);
  // Loss and accuracy are smoothed over time (1 % of nominal_seconds), equally for every policy.
  const Truth& truth() const override { return truth_; }

  // How often the truth is measured: whenever this share of nominal_seconds has passed, [0, 1]; 0:
  // after every window. For engines whose held-out pass costs as much as a window.
  void set_evaluate_every(double share) { evaluate_every_ = share; }
  void set_limits(const JobLimits& limits) { limits_ = limits; }
  const JobLimits& limits() const { return limits_; }
  int workers() const { return cluster_.workers(); }
  // Length of the run at the workload's base batch, balanced, without events: planned_samples at
  // that pace.
  double nominal_seconds() const { return nominal_seconds_; }
  double initial_loss() const { return initial_loss_; }  // held-out, before the first window
  double base_batch() const { return optimizer_.base_batch; }
  double planned_samples() const { return optimizer_.planned_samples; }
  double time_budget_seconds() const { return time_budget_s_; }  // the scenario's
  double samples_seen() const { return samples_seen_; }
  const std::vector<TimedEvent>& events() const { return cluster_.events(); }

  // Truth, for references and hindsight only: the local batches that make all compute times equal
  // in the window to come, with this global batch, inside the bounds.
  std::vector<int> BalancedSizes(double global_batch) const;
  // An exact copy in its present state; both continue identically under identical calls.
  std::unique_ptr<SimulatedCluster> Clone() const;

 private:
  double QuietSeconds() const;
  // The worker's largest batch once it knows its memory.
  int LoweredMax(int worker) const;
  void TakeSizes(const std::vector<int>& sizes);
  // Lowers the bounds of workers that just found out; the milliseconds lost to it.
  double RunOutOfMemory();
  TrainingReport RunWindow(const std::vector<int>& sizes);
  void UpdateTruth(double window_seconds);
  // Who takes part in the window to come: workers leave and join between windows.
  void BeginWindow();
  // Settings and entries, without reports.
  Round MakeRound(const std::vector<RoundEntry>& entries) const;
  Round MakeRound(const TrainingReport& training);

  OptimizerOptions optimizer_;
  double late_reports_;
  int window_iterations_;
  std::uint64_t seed_;
  std::unique_ptr<Convergence> initial_engine_, engine_;  // engine_: null before the first Start
  Cluster cluster_;
  std::vector<RoundEntry> start_entries_, entries_;  // without reports
  double nominal_seconds_ = 0, time_budget_s_ = 0, sample_budget_ = 0;
  double evaluate_every_ = 0;
  JobLimits limits_;
  Rng rng_;
  std::int64_t window_ = 0;
  double samples_seen_ = 0, since_evaluation_s_ = 0, initial_loss_ = 0;
  std::vector<int> batches_;  // of the last window, 0: absent
  Truth truth_;
};

// The job's events on its clock, the same on all backends.
std::vector<TimedEvent> EventsOf(const JobSpec& job);
// The scenario's time budget in seconds of the job's clock.
double BudgetSeconds(const JobSpec& job);

}  // namespace dynamix
