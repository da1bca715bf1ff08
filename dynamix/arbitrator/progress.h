// Progress of a live job, from its own reports: what the guard and online learning judge by.
//
// Nobody knows the held-out loss of a live job, so progress is read from the training loss that its
// workers report, smoothed. Pure functions and value types.
#pragma once

#include <utility>
#include <vector>

#include "dynamix/core/memory.h"
#include "dynamix/core/objective.h"
#include "dynamix/core/round.h"

namespace dynamix {

// Mean training loss over the workers that reported one.
double MeanLoss(const Round& round);

// A training loss, smoothed, and how much it usually moves from one window to the next. Changes are
// measured against the larger of the two: a loss may be negative (log-likelihoods) or pass through
// zero (policy losses), where its size alone says nothing.
class SmoothedLoss {
 public:
  void Add(double fresh);                  // a missing one changes nothing
  double value() const { return value_; }  // missing before the first
  // How far the loss is above `reference`: 0.5 is half of the reference's size.
  double RiseAbove(double reference) const;
  void VisitMemory(Memory& memory) { memory(value_, last_, movement_); }

 private:
  double value_ = kMissing, last_ = kMissing;
  double movement_ = kMissing;  // smoothed size of a window's change
};

// The loss of an earlier run of the same job over its time, as a clock: when did it first reach a
// loss?
class RecordedCurve {
 public:
  RecordedCurve() = default;
  // (seconds since the start, loss), in order of time; what is not finite is left out.
  explicit RecordedCurve(const std::vector<std::pair<double, double>>& points);

  bool empty() const { return points_.size() < 2; }
  // Seconds at which the earlier run first reached `loss`; its whole length when it never did.
  double Tau(double loss) const;
  double seconds() const { return points_.empty() ? 0 : points_.back().first; }

 private:
  std::vector<std::pair<double, double>> points_;  // of the running minimum of the smoothed loss
};

// What a window gained, in seconds of progress (reward.h): on the recorded curve when there is one,
// else on the job's own recent speed, so that 1 s per second means "as fast as lately".
class ProgressClock {
 public:
  // `units_per_run`: of time, in the recorded run (objective.h).
  explicit ProgressClock(RecordedCurve curve = {}, double units_per_run = Objective{}.units_per_run)
      : curve_(std::move(curve)), units_per_run_(units_per_run) {}

  // Seconds of progress in this round's window; missing before the second loss.
  double Advance(const Round& round);
  double loss() const { return loss_.value(); }  // smoothed; missing before the first
  // Seconds that count as one unit of time for discounts.
  double TimeScale() const;
  void VisitMemory(Memory& memory) { memory(loss_, rate_, seconds_, window_s_); }

 private:
  RecordedCurve curve_;
  double units_per_run_;
  SmoothedLoss loss_;
  double rate_ = kMissing;      // smoothed relative fall of the loss per second
  double seconds_ = 0;          // since the first round
  double window_s_ = kMissing;  // of the first window
};

}  // namespace dynamix
