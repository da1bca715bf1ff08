// Runs the jobs of a suite under policies, several at once.
//
// Exceptions of a run (also what a callback throws) end the suite and pass through. The functions
// themselves are not to be called from two threads with the same options; callbacks are called from
// several threads at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/core/policy_spec.h"
#include "dynamix/evaluation/evaluation.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/record/run_record.h"
#include "dynamix/simulator/reference.h"

namespace dynamix {

// What a job with real SGD spends besides training: what is known against what it costs.
struct VirtualOptions {
  int held_out_samples = 2000;  // the truth is measured on the first so many
  double evaluate_every = 0;    // SimulatedCluster::set_evaluate_every
  // Batch norm's statistics are of one worker's samples, or, when there are more workers than this,
  // of the samples of several: each group costs a pass of its own.
  int norm_groups = 4096;
};

// A fresh virtual cluster of a job. Thread-safe; the clusters share the data, which they only read.
using VirtualMaker =
    std::function<std::unique_ptr<SimulatedCluster>(const JobSpec&, const VirtualOptions&)>;

// What a caller may want to hear of.
struct RunCallbacks {
  // Before the first run: how many there are, and how many of them are known from before.
  std::function<void(long total, long known)> begun;
  std::function<void(const std::string& run)> finished;
  std::function<void()> window;  // after every window of every run; may throw to end all
};

struct SuiteRunOptions {
  std::string backend = "sim";  // sim or virtual, for records
  std::string record;           // folder of run folders; empty: none
  bool all_static = true;       // other static sizes too, and `best_static`
  bool bounds = true;           // sim: the hindsight bounds too
  int threads = 2;
  std::function<PolicySpec(const std::string& name)> find_policy;  // for the static sizes
  RunCallbacks callbacks;
};

// The job as a policy asks for it: with another clock of its schedule.
JobSpec JobUnder(const PolicySpec& policy, JobSpec job);

// One policy on one job, recorded in options.record if that is named. `reference` null: the job has
// none. `trace`, if not null, gets what the run did.
JobResult RunPolicy(const JobSpec& job, const PolicySpec& policy, SimulatedCluster& environment,
                    const SuiteRunOptions& options, double equal_time_s = 0,
                    const ReferenceCurve* reference = nullptr, RunRecord* trace = nullptr);

// `shown`, if not null, gets the runs of the first job under `policies`.
std::vector<JobResult> RunSimulatedSuite(const std::vector<JobSpec>& jobs,
                                         const std::vector<PolicySpec>& policies,
                                         const MiniaturePools& pools,
                                         const SuiteRunOptions& options,
                                         std::vector<RunRecord>* shown);
std::vector<JobResult> RunVirtualSuite(const std::vector<JobSpec>& jobs,
                                       const std::vector<PolicySpec>& policies,
                                       const VirtualMaker& make, const SuiteRunOptions& options,
                                       std::vector<RunRecord>* shown);

// Throws RecordLost when the folder of a run misses something.
void RequireWholeRecords(const std::vector<JobResult>& results);

}  // namespace dynamix
