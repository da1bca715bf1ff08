// Runs made by the simulator with known constants: calibration finds what they show.
#include "dynamix/simulator/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/core/report.h"
#include "dynamix/simulator/engine.h"
#include "dynamix/simulator/nelder_mead.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

Workload TrueWorkload() {
  Workload workload;
  workload.cost = {.sample_ms = 0.4,
                   .gradient_bytes = 2e6,
                   .overlap = 0.25,
                   .saturation = {.ramp_batch = 9, .spill_batch = 120, .spill = 0.8}};
  workload.optimizer = {.learning_rate = 0.05,
                        .momentum = 0.9,
                        .base_batch = 128,
                        .rule = LearningRateRule::kAdaScale,
                        .schedule = Schedule::kCosine,
                        .planned_samples = 400000};
  workload.convergence = QuadraticOptions{.curvature = 2.0,
                                          .curvature_decay = 1.4,
                                          .initial_loss = 1.9,
                                          .loss_decay = 0.3,
                                          .noise_scale = 90,
                                          .noise_floor = 0.15,
                                          .irreducible_loss = 0.2,
                                          .held_out_gap = 0.1,
                                          .best_accuracy = 0.94,
                                          .accuracy_exponent = 0.7};
  workload.target.accuracy = 0.91;
  return workload;
}

// A run at a constant local batch after the first window, recorded with the shipped constants as
// what was believed of it.
Trace Record(int batch, bool events = false) {
  Trace trace{.job = {.workload = TrueWorkload(), .workers = 4, .seed = 3}};
  trace.job.scenario.start_batch = batch;
  trace.job.scenario.nodes = {{.node = {.speed = 2}}, {.node = {.speed = 1}}};
  if (events) trace.job.scenario.events = {{.at = 0.1, .duration = 0.2, .factor = 5}};
  SimulatedCluster cluster(trace.job, MakeConvergence(trace.job.workload, {}, 3));
  double begin = 0;
  const auto add = [&](const Round& round) {
    TracedWindow window{.iterations = trace.job.window, .begin_s = begin, .seconds = round.seconds};
    window.held_out_accuracy = cluster.truth().held_out_accuracy;
    window.held_out_loss = cluster.truth().held_out_loss;
    for (const RoundEntry& entry : round.entries) {
      window.batches.push_back(entry.batch);
      window.compute_ms.push_back(entry.report->compute_ms);
      window.communication_ms = entry.report->communication_ms;
      window.noise_scale = entry.report->training.noise_scale;
    }
    begin += round.seconds;
    trace.windows.push_back(window);
  };
  add(cluster.Reset());
  while (cluster.samples_seen() < trace.job.workload.optimizer.planned_samples)
    add(cluster.Step(std::vector<int>(4, batch)));
  trace.job.workload.cost = CostOptions{.gradient_bytes = 2e6};
  trace.job.workload.convergence = QuadraticOptions{};
  return trace;
}

TEST(CalibrationTest, FindsTheCostOfASample) {
  const CostOptions cost = FitCost({Record(8), Record(32), Record(128), Record(512)}).cost;
  for (const double batch : {8.0, 20.0, 64.0, 200.0, 512.0}) {
    const CostOptions truth = TrueWorkload().cost;
    EXPECT_NEAR(cost.sample_ms * cost.saturation.Factor(batch),
                truth.sample_ms * truth.saturation.Factor(batch),
                0.05 * truth.sample_ms * truth.saturation.Factor(batch))
        << batch;
  }
  EXPECT_NEAR(cost.overlap, 0.25, 0.05);
}

TEST(CalibrationTest, WindowsUnderASlowdownDoNotCount) {
  const CostOptions quiet = FitCost({Record(32)}).cost, slowed = FitCost({Record(32, true)}).cost;
  EXPECT_NEAR(slowed.sample_ms * slowed.saturation.Factor(32),
              quiet.sample_ms * quiet.saturation.Factor(32), 0.02);
}

TEST(CalibrationTest, PredictsALocalBatchItDidNotSee) {
  const std::vector<Trace> seen = {Record(8), Record(16), Record(64), Record(128)};
  const FittedCost cost = FitCost(seen);
  const TargetOptions target{.accuracy = 0.91};
  const QuadraticOptions convergence = FitConvergence(seen, target);
  for (const int batch : {24, 48}) {
    const Trace held_out = Record(batch), replayed = Replay(held_out, cost, convergence);
    EXPECT_NEAR(replayed.MedianIterationMs() / held_out.MedianIterationMs(), 1, 0.1) << batch;
    ASSERT_GT(held_out.TimeTo(target), 10 * held_out.windows[0].seconds) << batch;
    EXPECT_NEAR(replayed.TimeTo(target) / held_out.TimeTo(target), 1, 0.2) << batch;
  }
}

TEST(CalibrationTest, PredictsWhenALossIsReached) {
  const std::vector<Trace> seen = {Record(8), Record(16), Record(64), Record(128)};
  const Trace held_out = Record(32);
  const TargetOptions target{.loss = 1.2 * held_out.Best(/*by_loss=*/true)};
  const Trace replayed = Replay(held_out, FitCost(seen), FitConvergence(seen, target));
  ASSERT_GT(held_out.TimeTo(target), 10 * held_out.windows[0].seconds);
  EXPECT_NEAR(replayed.TimeTo(target) / held_out.TimeTo(target), 1, 0.2);
}

TEST(CalibrationTest, WhatAnIterationTakesBeyondTheModelIsTheClusters) {
  std::vector<Trace> slow = {Record(8), Record(32), Record(128)};
  const double modelled_ms = FitCost(slow).extra_ms;
  for (Trace& trace : slow)
    for (TracedWindow& window : trace.windows) window.seconds += 3e-3 * window.iterations;
  const FittedCost fitted = FitCost(slow);
  EXPECT_NEAR(fitted.extra_ms - modelled_ms, 3, 0.01);
  EXPECT_NEAR(Replay(slow[1], fitted, {}).MedianIterationMs() / slow[1].MedianIterationMs(), 1,
              0.05);
}

// Accuracy 0.01 a window, but for what the second seed adds.
Trace Line(double added) {
  Trace trace{.job = {.workload = TrueWorkload(), .workers = 1}};
  trace.job.workload.optimizer.planned_samples = 1000;
  for (int w = 0; w < 100; ++w)
    trace.windows.push_back({.batches = {1},
                             .iterations = 10,
                             .begin_s = 2.0 * w,
                             .seconds = 2,
                             .held_out_accuracy = 0.01 * w + added,
                             .held_out_loss = added > 0 ? 4.0 : 1.0});
  return trace;
}

TEST(TraceTest, OneLuckyEvaluationDoesNotReachATarget) {
  Trace trace = Line(0);
  const double time_s = trace.TimeTo({.accuracy = 0.6});
  EXPECT_NEAR(time_s, 122, 1e-9);
  trace.windows[20].held_out_accuracy = 0.7;
  EXPECT_EQ(trace.TimeTo({.accuracy = 0.6}), time_s);
  EXPECT_TRUE(IsMissing(trace.TimeTo({.accuracy = 0.999})));
}

TEST(TraceTest, ATargetCanBeALoss) {
  Trace trace = Line(0);
  for (TracedWindow& window : trace.windows) window.held_out_loss = 2 - window.held_out_accuracy;
  EXPECT_NEAR(trace.TimeTo({.loss = 1.4}), trace.TimeTo({.accuracy = 0.6}), 1e-9);
  EXPECT_TRUE(IsMissing(trace.TimeTo({.loss = 0.5})));
  EXPECT_NEAR(trace.Best(/*by_loss=*/true), 2 - trace.Best(/*by_loss=*/false), 1e-9);
}

TEST(TraceTest, SeedsOfOneSizeAreAveraged) {
  Trace other = Line(0.02);
  other.windows[3].batches = {2};
  const std::vector<Trace> averaged = AverageSeeds({Line(0), other, Line(0.02)});
  ASSERT_EQ(averaged.size(), 2u) << "other batches stay apart";
  EXPECT_DOUBLE_EQ(averaged[0].windows[50].held_out_accuracy, 0.51);
  EXPECT_DOUBLE_EQ(averaged[0].windows[50].held_out_loss, 2);
}

TEST(CalibrationTest, RefusesNoRuns) { EXPECT_THROW(FitCost({}), InputError); }

TEST(NelderMeadTest, FindsTheMinimumOfRosenbrocksValley) {
  const Point found = Minimize(
      [](const Point& p) { return std::pow(1 - p[0], 2) + 100 * std::pow(p[1] - p[0] * p[0], 2); },
      {-1.2, 1}, 0.5, 400);
  EXPECT_NEAR(found[0], 1, 1e-3);
  EXPECT_NEAR(found[1], 1, 1e-3);
}

}  // namespace
}  // namespace dynamix
