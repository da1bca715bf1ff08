// The reference curve of a task: held-out loss over time under the reference (true balanced shares,
// the workload's base batch), and its inverse tau(L), the time at which the reference first reached
// loss L.
//
// The quality part of the reward is (tau(L') - tau(L)) / dt - 1 (core/reward.h): seconds of
// reference progress per second spent, less one.
// An immutable value; thread-safe.
#pragma once

#include <vector>

#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {

class ReferenceCurve {
 public:
  struct Point {
    double seconds;
    double loss;
    double accuracy = 0;
  };

  // Any points in order of time, the first at the start of the job; kept: the running minimum of
  // the loss. A curve that never falls is one point.
  explicit ReferenceCurve(const std::vector<Point>& points);

  // Seconds; falls as `loss` rises. Between points linear in loss. Below the last loss it goes on
  // at the mean slope of the last quarter of the improvement, above the first at that of the first
  // quarter, at most one run length outside of the curve. A loss that is not finite counts as the
  // worst.
  double Tau(double loss) const;

  // When the first window ended whose loss was at or below `loss`; the run's length when none did.
  double TimeTo(double loss) const;
  // Held-out accuracy at that time.
  double AccuracyAt(double loss) const;

  double initial_loss() const { return points_.front().loss; }
  double final_loss() const { return points_.back().loss; }
  double seconds() const { return run_seconds_; }  // length of the whole reference run
  // The loss after this share of the run's seconds, [0, 1].
  double LossAtTime(double share) const;
  // The same, but at most 99 % of the whole improvement.
  double LossForTarget(double run_share) const;
  // The first point with this held-out accuracy; null when there is none.
  const Point* FindAccuracy(double accuracy) const;
  const std::vector<Point>& points() const { return points_; }

 private:
  double Inside(double loss) const;

  std::vector<Point> points_;  // strictly falling loss, rising time
  double run_seconds_;
};

// Runs `cluster` (a copy: its own state is untouched) from its start under the reference until the
// planned samples are seen. `global_batch` 0: the workload's base batch.
ReferenceCurve RunReference(const SimulatedCluster& cluster, double global_batch = 0);

}  // namespace dynamix
