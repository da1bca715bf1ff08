// Evaluation: runs a policy on a job, and compares policies over many jobs.
//
// Comparisons are ratios of times to target on the same job with the same seed, averaged
// geometrically; below 1 means faster. A job that missed its target counts with its whole budget, a
// lower bound of the truth, and is flagged. Confidence intervals are 95 % Student intervals of the
// mean log ratio over jobs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/core/environment.h"
#include "dynamix/record/job_result.h"
#include "dynamix/simulator/reference.h"

namespace dynamix {

// Called after every window, for records and plots.
using WindowCallback = std::function<void(const Round&, const Decision&, const Truth&)>;

// Runs the job to its target (or budget) and on to `equal_time_s`. Fills everything but the names
// and the seed.
// `reference` (null: none) says what a window gained, for recorded rewards.
JobResult RunJob(Environment& environment, Arbitrator& arbitrator, double equal_time_s,
                 const WindowCallback& callback = {}, const ReferenceCurve* reference = nullptr);

struct Interval {
  double mean = 0;  // geometric
  double low = 0, high = 0;
  int jobs = 0;
};

// Time of `policy` over time of `baseline`, over the jobs both ran. Jobs = 0 when there are none.
Interval CompareTimes(const std::vector<JobResult>& results, const std::string& policy,
                      const std::string& baseline);

// Adds, for every job group (scenario, workload, workers), the results of the static size that was
// best there over all seeds, under the name `best_static`. Static results are those whose policy
// starts with "static".
void AddBestStatic(std::vector<JobResult>& results);

// Names of the policies, in order of first appearance.
std::vector<std::string> PolicyNames(const std::vector<JobResult>& results);

}  // namespace dynamix
