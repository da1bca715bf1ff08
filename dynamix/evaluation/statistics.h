// Statistics of policies over many jobs: what may be said of one policy against another, and what
// may not.
//
// A comparison is a ratio of times to target on the same job with the same seed, averaged
// geometrically; below 1 is faster. A missed target counts with the job's whole time budget, a
// lower bound of the truth. Jobs of one workload resemble each other, so intervals come from a
// cluster bootstrap over workloads; formulas head statistics.cc. An interval that holds 1 says that
// there is no clear difference. Beside times to target stands the pace, which hangs less on luck.
// Pure, deterministic; a bootstrap's draws have a fixed seed.
#pragma once

#include <string>
#include <vector>

#include "dynamix/record/job_result.h"

namespace dynamix {

// 95 % interval of a geometric mean.
struct Interval {
  double mean = 0;
  double low = 0, high = 0;
  int jobs = 0;
  int workloads = 0;
  // The interval leaves out 1.
  bool clear() const { return jobs > 1 && (high < 1 || low > 1); }
};

inline constexpr double kTie = 1.02;  // ratios from 1 / kTie to kTie are ties

struct Comparison {
  std::string policy, baseline;
  Interval ratio;                      // of times, over the jobs both ran; jobs = 0: none
  int wins = 0, ties = 0, losses = 0;  // of the policy
  double worst_ratio = 0;              // the largest
  std::string worst_job;               // where; empty: no job
  // The same by pace (pace.h), over the jobs of which both have a curve.
  Interval pace;
  double worst_pace = 0;
  std::string worst_pace_job;
};

// Time of `policy` over time of `baseline`.
Comparison Compare(const std::vector<JobResult>& results, const std::string& policy,
                   const std::string& baseline);

// "0.72 [0.61, 0.85]", "0.94 [0.80, 1.09]"; "-" without jobs, no brackets for a single job.
std::string Text(const Interval& interval);
// "faster", "slower" or "no clear difference".
std::string Verdict(const Interval& interval);

// A job's ratio, for plots and lists.
struct JobRatio {
  std::string scenario;  // names the job of a population
  std::string job;       // JobName
  double ratio = 0;
  bool reached = false;  // by the policy
};
std::vector<JobRatio> JobRatios(const std::vector<JobResult>& results, const std::string& policy,
                                const std::string& baseline);

// "homogeneous, lenet_fashion x8, seed 3".
std::string JobName(const JobResult& result);

// Held-out accuracy and loss of a policy when all have had the same time, and the same samples (so
// the same epochs): means over jobs. A job's moment is when its first policy reached the target, by
// time and by samples; when none did, the end of the shortest run.
struct EqualFigures {
  std::string policy;
  double accuracy_at_time = 0, loss_at_time = 0;
  double accuracy_at_samples = 0, loss_at_samples = 0;
  int jobs = 0;
};
// One per policy, in this order, over the jobs that all of them ran and recorded a curve of.
std::vector<EqualFigures> CompareAtEqual(const std::vector<JobResult>& results,
                                         const std::vector<std::string>& policies);

// The share of its jobs in which the policy reached the target; 0 without jobs.
double ReachedShare(const std::vector<JobResult>& results, const std::string& policy);

// Of these policies the one with the lowest geometric mean time over the jobs that all of them ran:
// what a user who may choose one for all jobs should have chosen. Empty when there are none.
std::string BestOf(const std::vector<JobResult>& results, const std::vector<std::string>& policies);

}  // namespace dynamix
