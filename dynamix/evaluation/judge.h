// The judge: policies on the jobs of a population, each job with the target and budget that its own
// reference run gave it.
//
// The reference of a job is the job itself at its base batch, with shares that are truly balanced in
// every window after the first, which starts as the job starts. So a target it reached can be
// reached. It runs once; runs are kept (result_cache.h). A job whose reference learned too little has
// no target and is left out; when there is no other, Judge throws std::runtime_error. It passes on
// what a run throws. A judgement is a plain value.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dynamix/evaluation/population.h"
#include "dynamix/evaluation/suite_run.h"

namespace dynamix {

// What a run computes has this version: raise it with every change of training, simulator, rules or
// states after which the same job gives other figures (CONTRIBUTING.md). The hash of the features is
// part of the version without anybody's help.
inline constexpr int kRunVersion = 5;

// What ends a job.
struct JobTarget {
  double accuracy = 0, loss = 0;  // one of them is above 0
  double reference_s = 0;         // when the reference reached it
  double reference_samples = 0;   // with how many samples
  double budget_s = 0;
};

// From the curve of the job's reference run. None when the curve gains too little to set a target.
std::optional<JobTarget> MakeTarget(const PopulationJob& job,
                                    const std::vector<CurvePoint>& reference);

struct JudgedPolicy {
  std::string name;
  std::string checksum;  // of its file; empty: a rule
};

struct Judgement {
  std::string suite;
  std::string version;
  bool whole = true;  // all jobs at their full length
  std::vector<JudgedPolicy> policies;
  std::vector<PopulationJob> jobs;
  std::vector<JobTarget> targets;     // one per job
  std::vector<std::string> left_out;  // jobs without a target
  std::vector<JobResult> results;     // JobResult::scenario is the job's name
};

inline constexpr const char* kReference =
    "reference";  // among policies, of the runs that set targets

struct JudgeOptions {
  std::string cache;            // folder; empty: every run is made
  std::set<std::string> fresh;  // policies whose runs are made again
  SuiteRunOptions runs;         // threads, records and callbacks; the rest is not used
};

// Runs what is not known yet. `policies` are told apart by name.
Judgement Judge(Population population, const std::vector<PopulationJob>& jobs,
                const std::vector<PolicySpec>& policies, const VirtualMaker& make,
                const JudgeOptions& options);

// These jobs with their planned samples multiplied: for a first look, not for figures.
std::vector<PopulationJob> Shortened(std::vector<PopulationJob> jobs, double length);

// "4-c471f998d49937bc": code and features.
std::string RunVersion();

}  // namespace dynamix
