// The time line of a job: how long an iteration takes at another global batch.
//
//   t_i(b) = overhead_i + cost_i b             fitted for each worker to its recent windows
//   T(B)   = max_i t_i(b_i) + exchange         with b_i balanced: sum_i b_i = B, t_i equal,
//                                              each b_i inside its bounds
// The exchange is the mean measured one (the part that is not hidden behind compute), which does
// not depend on B. TimeLine remembers what it measured from round to round; TimeCurve is T at one
// moment. Value types; never fail: what is not measurable is left out. One TimeLine per job.
#pragma once

#include <vector>

#include "dynamix/core/memory.h"
#include "dynamix/core/round.h"

namespace dynamix {

struct TimeLineOptions {
  // Weight of all windows before against a new one: 0.8 remembers about five windows, so that a
  // slowdown is forgotten when it ends. [0, 1)
  double memory = 0.8;
  // A window that takes this many times longer or shorter than the line says, at about the same
  // batch, comes from another device: earlier windows are forgotten. > 1
  double jump = 1.5;
  // Share of compute time that is taken as overhead until batches have differed. Too low a share
  // makes a policy try smaller batches, whose windows are short; too high a share makes it try
  // larger ones, whose windows are long. [0, 1)
  double overhead_share = 0.1;
  // How far batches must vary (variance over squared mean) to count as much as what was known
  // before. > 0
  double ridge = 0.01;
  // Weight of a new window in the mean exchange. (0, 1]
  double exchange_weight = 0.3;
};

// t(b) = overhead + cost b.
struct ComputeLine {
  double overhead_ms = 0;  // >= 0
  double cost_ms = 0;      // per sample, > 0
  double Ms(double batch) const { return overhead_ms + cost_ms * batch; }
  double BatchIn(double ms) const { return (ms - overhead_ms) / cost_ms; }
};

// T(B) at one moment, for the active workers of one round.
class TimeCurve {
 public:
  // `lines` and `bounds`: one per active worker.
  TimeCurve(const std::vector<ComputeLine>& lines, const std::vector<BatchBounds>& bounds,
            double exchange_ms);

  double IterationMs(double global_batch) const { return ComputeMs(global_batch) + exchange_ms_; }
  // Of the slowest worker.
  double ComputeMs(double global_batch) const;
  // The largest global batch that takes no longer than the smallest: up to it, the slowest worker
  // sits at its lowest batch.
  double free_batch() const { return knots_.front().batch; }

 private:
  // The curve is a straight line between knots, flat before the first and after the last.
  struct Knot {
    double batch, ms;
  };
  std::vector<Knot> knots_;
  double exchange_ms_;
};

class TimeLine {
 public:
  explicit TimeLine(const TimeLineOptions& options = {}) : options_(options) {}

  // Takes in a round's reports. Workers keep their slots from round to round.
  void Add(const Round& round);
  // False before anybody was measured.
  bool known() const { return !IsMissing(elasticity_); }
  // T(B) for the active workers of `round`. Requires known(). An active worker that was never
  // measured counts as an average one.
  TimeCurve Curve(const Round& round) const;
  // Time of an iteration at the batches in force. Requires known().
  double IterationMs(const Round& round) const;
  // The local batches that let all active workers finish together at a global batch, one per entry;
  // 0 for inactive ones. Requires known().
  std::vector<double> Split(const Round& round, double global_batch) const;
  void VisitMemory(Memory& memory) { memory(workers_, elasticity_, exchange_ms_); }

 private:
  // Sums over a worker's windows, with exponentially falling weights.
  struct Windows {
    double weight = 0, b = 0, t = 0, bb = 0, bt = 0;
    double mean_batch() const { return b / weight; }
    double mean_ms() const { return t / weight; }
    void VisitMemory(Memory& memory) { memory(weight, b, t, bb, bt); }
  };

  void AddWindow(double batch, double compute_ms, Windows& windows) const;
  ComputeLine LineOf(const Windows& windows) const;
  // One per entry.
  std::vector<ComputeLine> Lines(const Round& round) const;

  TimeLineOptions options_;
  std::vector<Windows> workers_;
  double elasticity_ = kMissing;
  double exchange_ms_ = kMissing;
};

}  // namespace dynamix
