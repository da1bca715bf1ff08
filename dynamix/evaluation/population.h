// The population that policies are judged on: jobs with real SGD, as people have them, drawn from a
// seed instead of written by hand.
//
// Draws share nothing but their factors: neither jobs nor seeds. The two validations are for
// developers, who look at them as often as they like; `judge` is looked at once per shipped policy.
// No model and data set of theirs is among what learning sees. Every value of every factor appears
// equally often, to within one. What is drawn heads population.cc; docs/judge.md explains it.
//
// Pure: the same draw gives the same jobs on every machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamix/job/job_spec.h"

namespace dynamix {

enum class Population : int { kValidation = 0, kJudge, kMoreValidation };

// "validation-jobs", "judge", "more-validation-jobs": what --suite calls them.
std::string_view Name(Population population);
std::optional<Population> ParsePopulation(std::string_view name);

enum class ClusterKind : int {
  kQuiet = 0,     // equal nodes, nothing happens
  kTwoKinds,      // fast and slow nodes
  kSpread,        // no two nodes are alike
  kContended,     // others use the nodes now and then
  kNetworkBound,  // an exchange takes 4 to 60 times the compute of a base share
  kLossy,         // links of a third of the nodes lose packets
  kLeaveJoin,     // some nodes leave for a while, some come late
};
inline constexpr int kClusterKindCount = 7;
std::string_view Name(ClusterKind kind);

enum class StartKind : int {
  kTuned = 0,  // at the base batch
  kScaledOut,  // each worker keeps the local batch it had on 2, 4 or 8 times fewer workers
  kBad,        // 4, 8 or 16 times off, either way
};
inline constexpr int kStartKindCount = 3;
std::string_view Name(StartKind kind);

enum class RateKind : int {
  kTuned = 0,  // best at the base batch
  kLow,        // a quarter of it
  kHigh,       // twice
};
inline constexpr int kRateKindCount = 3;
std::string_view Name(RateKind kind);

// A job as it is drawn. Its target is still a share of its reference run (target.run_share): the
// run turns it into an accuracy or a loss (judge.h).
struct PopulationJob {
  JobSpec spec;  // scenario.name names the job, workload.name what is trained
  ClusterKind cluster = ClusterKind::kQuiet;
  StartKind start = StartKind::kTuned;
  RateKind rate = RateKind::kTuned;
  double start_scale = 1;       // global batch at the start over the base batch
  double exchange_ratio = 1;    // exchange over compute of a base share, without loss and overlap
  int held_out_samples = 1000;  // on which the truth is measured
  bool target_is_loss = false;
  bool target_is_named = true;  // to the policy

  const std::string& name() const { return spec.scenario.name; }
};

std::vector<PopulationJob> DrawPopulation(Population population);

// (factor, value) pairs of a job, the factors of all jobs in the same order: what results are broken
// down by.
std::vector<std::pair<std::string, std::string>> Factors(const PopulationJob& job);

// What the population trains: nothing that learns may see one of these models with its data.
std::vector<ModelOptions> JudgedModels();
// The data sets that jobs need, each once.
std::vector<std::string> DatasetsOf(const std::vector<PopulationJob>& jobs);

}  // namespace dynamix
