// Policy: anything that maps what was seen to what is wanted; static, a rule, or learned.
//
// A policy belongs to one job and may keep memory between rounds (a controller's average, a fitted
// line). Not thread-safe. It never fails: what it cannot see is missing in its input, and its
// wishes are made legal by Apply. Entry i of every vector is worker i of the round.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dynamix/core/landmarks.h"
#include "dynamix/core/memory.h"
#include "dynamix/core/rng.h"
#include "dynamix/core/round.h"

namespace dynamix {

// The encoded round. Rows are float32, row-major; a missing measurement is NaN and stays NaN until
// a policy's normaliser maps it to its mean.
struct States {
  int workers = 0;
  std::vector<float> local;  // workers x LocalWidth(): own features, then the global ones
  std::vector<float> team;   // TeamWidth(): global features, then pooled local ones
  // Each worker's measured, speed-proportional share of the global batch: sums to 1 over the active
  // workers, 0 for the others.
  std::vector<double> shares;
  Landmarks landmarks;  // where the team can go
};

// Indices into the action set: one for the global batch, one per worker. A head that is switched
// off, an inactive worker and a late one hold.
struct Actions {
  int team = 0;
  std::vector<int> local;
  // When set, the global batch is multiplied by this instead of what `team` does: a policy that is
  // torn between growing a little and holding grows less than a little, and does not flap. > 0
  std::optional<double> team_factor = {};
};

// Real-valued local batches, for rules that compute a size instead of an adjustment.
struct Sizes {
  std::vector<double> local;
};

using Decisions = std::variant<Actions, Sizes>;

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  virtual Decisions Decide(const Round& round, const States& states, Rng& rng) = 0;
  // The global batch to open with, from what a job says about itself: `round` has no reports. Missing:
  // the job's start.
  virtual double OpeningBatch(const Round&) const { return kMissing; }
  // Forgets everything learned about the current job: the next round is the first of a new one.
  virtual void Reset() = 0;
  // Names what is remembered of the current job, for checkpoints. A policy that remembers nothing
  // has nothing to name.
  virtual void VisitMemory(Memory&) {}
};

}  // namespace dynamix
