// Evaluation: runs a policy on a job, and what is read from many results. How policies are compared
// is in statistics.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/core/environment.h"
#include "dynamix/record/job_result.h"
#include "dynamix/simulator/reference.h"

namespace dynamix {

// Called after every window, for records and plots. What it throws ends the run and passes through.
using WindowCallback = std::function<void(const Round&, const Decision&, const Truth&)>;

// Runs the job to its target (or budget) and on to `equal_time_s`. Fills everything but the names
// and the seed. A target that is missed, by whatever budget ended the run, is booked with the whole
// time budget, or with the time it ran when the job has none.
// `reference` (null: none) says what a window gained, for recorded rewards.
JobResult RunJob(Environment& environment, Arbitrator& arbitrator, double equal_time_s,
                 const WindowCallback& callback = {}, const ReferenceCurve* reference = nullptr);

// Adds, for every job group (scenario, workload, workers), the results of the static size that was
// best there over all seeds, under the name `best_static`; only of sizes that reached the target in
// every seed, so a group has none when every size missed once. Static results are those whose
// policy starts with "static".
void AddBestStatic(std::vector<JobResult>& results);

// Names of the policies, in order of first appearance.
std::vector<std::string> PolicyNames(const std::vector<JobResult>& results);

}  // namespace dynamix
