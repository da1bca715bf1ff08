// A task: a job with the reference run that fixes its target, budget and time scale. A value;
// making environments from it is thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "dynamix/job/job_spec.h"
#include "dynamix/simulator/miniatures/data.h"
#include "dynamix/simulator/reference.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {

struct Task {
  JobSpec job;
  MiniaturePools pools;  // empty when the workload is a quadratic
  ReferenceCurve reference;
  JobLimits limits{};            // target of the workload, budget of the scenario
  double reference_seconds = 0;  // reference time to the target: the task's time scale

  // A fresh environment of this task; Start() it before use. A `seed_offset` other than 0 gives the
  // same training another course of jitter, measurement noise and random events.
  std::unique_ptr<SimulatedCluster> MakeEnvironment(std::uint64_t seed_offset = 0) const;
};

// Runs the reference once. Throws InputError naming the target when the reference does not reach it
// within the planned samples, and whatever the descriptions' own validation throws. The budget is
// the scenario's, and at least three times the reference's time to the target.
Task MakeTask(const JobSpec& job, const MiniaturePools& pools);

}  // namespace dynamix
