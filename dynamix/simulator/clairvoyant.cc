// Search for the best schedule of the global batch, with true balanced shares:
//
//   1. the best constant batch
//   2. a schedule with kKnots values of log2 B, linear between equal steps of log(loss - floor),
//      the coordinate in which training advances evenly: straight lines first, then coordinate
//      descent with steps of 1, 1/2 and 1/4 octave on single knots and on all knots from one on
//   3. rollouts: a few factors on the schedule's batch for the next kBlock windows are tried by
//      running copies to the target under the schedule, and the fastest is kept, block by block.
//      Copies know the events to come, so this is where batches prepare for them.
//
// Every run is given up once it is slower than the best. The result is a time that was achieved: a
// bound from above on the best possible time.
#include "dynamix/simulator/clairvoyant.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "dynamix/core/action.h"

namespace dynamix {
namespace {

constexpr int kKnots = 7;
constexpr int kBlock = 4;
constexpr double kNever = std::numeric_limits<double>::infinity();

// The global batch for the window to come.
using Chooser = std::function<double(const SimulatedCluster&)>;

// Runs on from the present state to the target. Infinity when the time passes `give_up_s` or the
// budget is spent.
double RunToTarget(SimulatedCluster& cluster, const Chooser& choose, double give_up_s) {
  while (!cluster.truth().reached) {
    if (cluster.truth().out_of_time || cluster.truth().seconds >= give_up_s) return kNever;
    cluster.Advance(cluster.BalancedSizes(choose(cluster)));
  }
  return cluster.truth().seconds <= give_up_s ? cluster.truth().seconds : kNever;
}

struct BatchRange {
  double low, high;
};

BatchRange LegalBatches(const Task& task) {
  const BatchBounds& bounds = task.job.scenario.bounds;
  return {static_cast<double>(bounds.lowest()) * task.job.workers,
          static_cast<double>(bounds.highest()) * task.job.workers};
}

// What is tried runs on copies of one environment after its first window, which is at the base batch:
// policies may open there too.
class Search {
 public:
  explicit Search(const Task& task)
      : task_(task), range_(LegalBatches(task)), start_(task.MakeEnvironment()) {
    const Round opening = start_->Opening();
    start_->Start(Open(opening, BaseBatch(opening)));
    best_s_ = task.limits.seconds;
    target_loss_ = task.reference.LossAtTime(task.reference_seconds / task.reference.seconds());
  }

  // True when this chooser is faster than everything before it.
  bool Try(const Chooser& choose) {
    const auto run = start_->Clone();
    const double seconds = RunToTarget(*run, choose, best_s_);
    if (seconds >= best_s_) return false;
    best_s_ = seconds;
    found_ = true;
    return true;
  }

  bool TryConstant(double batch) {
    if (!Try([batch](const SimulatedCluster&) { return batch; })) return false;
    constant_ = batch;
    return true;
  }

  void FindConstant() {
    constant_ = std::clamp(task_.job.workload.optimizer.base_batch, range_.low, range_.high);
    const double center = constant_;
    TryConstant(center);
    for (const double step : {std::sqrt(2.0), 1 / std::sqrt(2.0)}) {
      for (double batch = center * step; batch >= range_.low && batch <= range_.high; batch *= step)
        TryConstant(batch);
    }
    const double coarse = constant_;
    for (const double step : {std::exp2(0.25), std::exp2(-0.25)})
      TryConstant(std::clamp(coarse * step, range_.low, range_.high));
  }

  // A straight line in the exponent first, then knots one by one and all that follow one.
  void FindSchedule() {
    Knots best;
    best.fill(std::log2(constant_));
    for (const double shift : {0.0, 0.7, -0.7, 1.4, -1.4}) {
      for (const double tilt : {1.0, -1.0, 2.0, -2.0, 3.5, -3.5}) {
        for (int knot = 0; knot < kKnots; ++knot)
          knots_[knot] = std::log2(constant_) + shift + tilt * (knot / (kKnots - 1.0) - 0.5);
        if (Try(Scheduled())) best = knots_;
      }
    }
    knots_ = best;
    for (const double step : {1.0, 0.5, 0.25}) {
      bool improved = true;
      for (int sweep = 0; sweep < 4 && improved; ++sweep) {
        improved = false;
        for (int knot = 0; knot < kKnots; ++knot) {
          improved = MoveKnots(knot, kKnots, step) || improved;
          improved = MoveKnots(knot, knot + 1, step) || improved;
        }
      }
    }
  }

  // Fills `batches` with the schedule that was kept.
  void FollowRollouts(std::vector<double>& batches) {
    const auto run = start_->Clone();
    while (!run->truth().reached && !run->truth().out_of_time) {
      double best_factor = 1, best_s = kNever;
      for (const double factor : {1.0, 0.6, 0.8, 1.25, 1.7}) {
        const auto copy = run->Clone();
        RunBlock(*copy, factor, nullptr);
        const double seconds =
            RunToTarget(*copy, Scheduled(), std::min(best_s, task_.limits.seconds));
        if (seconds < best_s) {
          best_s = seconds;
          best_factor = factor;
        }
      }
      RunBlock(*run, best_factor, &batches);
    }
    found_ = found_ || run->truth().reached;
    if (run->truth().reached) best_s_ = std::min(best_s_, run->truth().seconds);
  }

  double best_s() const { return best_s_; }
  double constant() const { return constant_; }
  bool found() const { return found_; }
  const SimulatedCluster& start() const { return *start_; }

  Chooser Scheduled() const {
    return
        [this](const SimulatedCluster& cluster) { return BatchAt(cluster.truth().held_out_loss); };
  }

 private:
  using Knots = std::array<double, kKnots>;

  double BatchAt(double loss) const {
    // The reference's lowest loss may be above what is possible: half of the way below it is the
    // floor.
    const double first = start_->initial_loss(), target = target_loss_;
    const double floor =
        target - 0.5 * (target - task_.reference.final_loss()) - 0.02 * (first - target);
    const double whole = std::log((first - floor) / (target - floor));
    const double gone = std::log((first - floor) / std::max(loss - floor, target - floor));
    const double at = std::clamp(gone / whole, 0.0, 1.0) * (kKnots - 1);
    const int knot = std::min(static_cast<int>(at), kKnots - 2);
    const double part = at - knot;
    const double exponent = knots_[knot] * (1 - part) + knots_[knot + 1] * part;
    return std::clamp(std::exp2(exponent), range_.low, range_.high);
  }

  bool MoveKnots(int begin, int end, double step) {
    const Knots before = knots_;
    for (const double change : {step, -step}) {
      for (int knot = begin; knot < end; ++knot) knots_[knot] = before[knot] + change;
      if (Try(Scheduled())) return true;
    }
    knots_ = before;
    return false;
  }

  void RunBlock(SimulatedCluster& cluster, double factor, std::vector<double>* batches) {
    for (int k = 0; k < kBlock && !cluster.truth().reached; ++k) {
      const double batch = factor * BatchAt(cluster.truth().held_out_loss);
      if (batches != nullptr) batches->push_back(batch);
      cluster.Advance(cluster.BalancedSizes(batch));
    }
  }

  const Task& task_;  // outlives the search, which lives in one call
  BatchRange range_;
  std::unique_ptr<SimulatedCluster> start_;
  double best_s_ = kNever;
  double target_loss_ = 0;  // also when the target is an accuracy
  double constant_ = 0;
  bool found_ = false;
  Knots knots_{};
};

// Runs the winner once more, on to the time at which accuracies are compared.
Bound Replay(const Task& task, const Search& search, const Chooser& choose) {
  Bound bound;
  const auto run = search.start().Clone();
  bound.final_accuracy = run->truth().held_out_accuracy;
  while (!run->truth().reached || run->truth().seconds < task.reference_seconds) {
    if (run->truth().out_of_time) break;
    const double batch = choose(*run);
    if (!run->truth().reached) bound.global_batches.push_back(batch);
    run->Advance(run->BalancedSizes(batch));
    if (run->truth().seconds <= task.reference_seconds)
      bound.final_accuracy = run->truth().held_out_accuracy;
  }
  bound.reached = search.found();
  bound.time_to_target_s = search.best_s();
  return bound;
}

}  // namespace

Bound BestConstantBatch(const Task& task) {
  Search search(task);
  search.FindConstant();
  const double batch = search.constant();
  return Replay(task, search, [batch](const SimulatedCluster&) { return batch; });
}

Bound Clairvoyant(const Task& task) {
  Search search(task);
  search.FindConstant();
  search.FindSchedule();
  const double scheduled_s = search.best_s();
  std::vector<double> batches;
  search.FollowRollouts(batches);
  if (search.best_s() >= scheduled_s) return Replay(task, search, search.Scheduled());
  std::size_t window = 0;
  return Replay(task, search, [&batches, &window](const SimulatedCluster&) {
    return batches[std::min(window++, batches.size() - 1)];
  });
}

}  // namespace dynamix
