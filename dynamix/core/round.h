// A round: the reports of all workers for one window, and what is known about each worker without
// measuring.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dynamix/core/batch.h"
#include "dynamix/core/learning_rate.h"
#include "dynamix/core/report.h"

namespace dynamix {

inline constexpr int kMaxWorkers = 4096;  // of one job

// One worker's part in a round. Slots are stable: entry i is the same worker in every round of a
// job.
struct RoundEntry {
  BatchBounds bounds;
  int start_batch = 0;  // local batch the job was started with, > 0
  int batch = 0;        // local batch in force, > 0
  // False when the worker left, or has not joined: it gets no advice and enters no mean.
  bool active = true;
  // Empty when an active worker was late: it is masked out of measurements, and keeps its batch.
  std::optional<Report> report;

  bool Reported() const { return active && report.has_value(); }
};

// What a job was configured with; missing what the user did not say.
struct JobSettings {
  LearningRateRule rule = LearningRateRule::kNone;
  Schedule schedule = Schedule::kConstant;
  ScheduleClock clock = ScheduleClock::kSamples;
  bool adaptive = false;  // the optimizer scales every weight's step by itself (Adam, AdamW)
  double base_learning_rate = kMissing;  // at the start of the job, > 0
  double base_batch = kMissing;          // global batch the base learning rate belongs to, > 0
  // What the user waits for, at most one of them.
  double target_accuracy = kMissing;  // (0, 1)
  double target_loss = kMissing;      // > 0
};

// Every round of a job repeats its settings.
struct Round : JobSettings {
  std::int64_t index = 0;
  // Length of the window on the job's clock, > 0; the slowest worker's.
  double seconds = 0;
  std::vector<RoundEntry> entries;

  int ActiveCount() const {
    int count = 0;
    for (const auto& entry : entries) count += entry.active ? 1 : 0;
    return count;
  }
  // Sum of the active workers' batches in force.
  double GlobalBatch() const {
    double sum = 0;
    for (const auto& entry : entries) sum += entry.active ? entry.batch : 0;
    return sum;
  }
};

// The local batch in force of every worker, active or not: what "nothing changes" decides.
std::vector<int> Batches(const Round& round);

// Mean of `value(report)` over the workers that reported it; missing when none did.
template <typename Value>
double MeanOver(const Round& round, Value value) {
  double sum = 0;
  int count = 0;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.Reported()) continue;
    const double x = value(*entry.report);
    if (IsMissing(x)) continue;
    sum += x;
    ++count;
  }
  return count > 0 ? sum / count : kMissing;
}

// The job's base batch; its start when it names none.
double BaseBatch(const Round& round);

// Splits a global batch over the active workers in proportion to `weights` (one per entry), inside
// their bounds (Distribute); 0 for inactive ones.
std::vector<double> SplitGlobalBatch(const Round& round, double global_batch,
                                     const std::vector<double>& weights);

// The smallest and largest legal global batch.
struct GlobalBounds {
  double lowest = 0, highest = 0;
};
GlobalBounds BoundsOf(const Round& round);

}  // namespace dynamix
