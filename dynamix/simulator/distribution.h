// Tasks: a scenario, a workload and a seed, with the reference run that fixes target, budget and
// reward scale; and the random distributions they are drawn from.
//
//   training    what a policy learns on
//   validation  the same ranges, other seeds: checkpoints are selected on it
//   held out    other seeds, and partly outside the ranges: judged on, never tuned on
// Seeds of the three never meet: each draws from its own stream of the given generator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/simulator/reference.h"
#include "dynamix/simulator/scenario.h"
#include "dynamix/simulator/simulated_cluster.h"
#include "dynamix/simulator/workload.h"

namespace dynamix {

struct Task {
  Scenario scenario;
  Workload workload;  // on this task's workers (Workload::OnWorkers applied)
  int workers = 0;
  std::uint64_t seed = 0;
  int window_iterations = 20;
  MiniaturePools pools;  // empty when the workload is a quadratic
  ReferenceCurve reference;
  JobLimits limits;              // target from the workload, budget from the reference
  double reference_seconds = 0;  // reference time to the target: the task's time scale

  // A fresh environment of this task; Reset() it before use. `seed_offset` other than 0 gives the
  // same task another course of noise, jitter and random events.
  std::unique_ptr<SimulatedCluster> MakeEnvironment(std::uint64_t seed_offset = 0) const;
};

// Runs the reference once. The target is the workload's; one that the reference cannot reach is an
// InputError naming it and what the reference reached. Budget: the scenario's, but at least
// budget_factor x reference time.
Task MakeTask(const Scenario& scenario, const Workload& workload, int workers, std::uint64_t seed,
              const MiniaturePools& pools, int window_iterations = 20);

enum class DistributionKind : int { kTraining = 0, kValidation, kHeldOut };

struct DistributionOptions {
  DistributionKind kind = DistributionKind::kTraining;
  int min_workers = 2;
  int max_workers = 16;
  double miniature_share = 0.7;  // of the tasks; the others are quadratics, [0, 1]
  MiniaturePools pools;          // both are needed when miniature_share > 0
  int window_iterations = 20;
  int min_windows = 60;  // length of the reference run at the base batch
  int max_windows = 240;
  void Validate() const;
};

Task RandomTask(Rng& rng, const DistributionOptions& options);

}  // namespace dynamix
