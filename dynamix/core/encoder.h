// The state encoder: reports to dimensionless states, and the list of features it makes.
//
// Only what a live worker can measure enters. Ratios and logarithms make the state independent of units, of
// the model, of the device and of the number of workers. A feature that cannot be computed is missing (NaN),
// never invented. Every feature is one line of kLocalFeatures or kGlobalFeatures in encoder.cc, with name,
// unit, range and family; docs/metrics.md repeats them and a test compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dynamix/core/policy.h"
#include "dynamix/core/round.h"

namespace dynamix {

enum class FeatureFamily { kBatch, kNetwork, kSystem, kStatistics };

struct Feature {
  std::string_view name;
  std::string_view unit;  // "log2", "share", "flag", "rounds", "ratio"
  double low, high;       // values are clipped to this range
  FeatureFamily family;
  bool pooled;            // local features only: mean, max and spread over workers enter the team row
};

std::span<const Feature> LocalFeatures();
std::span<const Feature> GlobalFeatures();

// Rows: local = local features then global ones; team = global ones, then mean, max, spread of each pooled one.
int LocalWidth();
int TeamWidth();
// Family of each column, to switch a family off in an ablation.
std::vector<FeatureFamily> LocalColumns();
std::vector<FeatureFamily> TeamColumns();

// FNV-1a over names, units, ranges and order: a policy file made for another list is refused.
std::uint64_t FeatureHash();

class Encoder {
 public:
  // `round` must have the same workers in the same slots as the rounds before it.
  States Encode(const Round& round);
  // The next round is the first of a new job.
  void Reset();

 private:
  // What is remembered of one worker between rounds.
  struct WorkerMemory {
    double samples_per_ms = 0;  // smoothed; 0 before the first measurement
    int batch = 0;              // in force in the round before
    double last_change = 0;     // log2 of the last change of batch
    int change_age = 0;         // rounds since
  };
  std::vector<double> MeasureShares(const Round& round);

  std::vector<WorkerMemory> workers_;
  double global_batch_ = 0;
  double last_team_change_ = 0;
  int team_change_age_ = 0;
  double smoothed_loss_ = 0, smoothed_accuracy_ = 0, smoothed_slope_ = 0;
  int rounds_ = 0;
};

}  // namespace dynamix
