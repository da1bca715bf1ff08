#include "dynamix/simulator/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dynamix/simulator/engine.h"

namespace dynamix {
namespace {

const ReferenceCurve kCurve({{0, 4, 0.1}, {1, 3, 0.3}, {2, 3.5, 0.2}, {3, 2, 0.6}, {5, 1, 0.8}});

TEST(ReferenceCurveTest, KeepsTheRunningMinimum) {
  ASSERT_EQ(kCurve.points().size(), 4u);
  EXPECT_EQ(kCurve.points()[2].seconds, 3);
  EXPECT_EQ(kCurve.seconds(), 5);
}

TEST(ReferenceCurveTest, TauIsLinearBetweenPoints) {
  EXPECT_DOUBLE_EQ(kCurve.Tau(4), 0);
  EXPECT_DOUBLE_EQ(kCurve.Tau(3.5), 0.5);
  EXPECT_DOUBLE_EQ(kCurve.Tau(3), 1);
  EXPECT_DOUBLE_EQ(kCurve.Tau(2.5), 2);
  EXPECT_DOUBLE_EQ(kCurve.Tau(1), 5);
}

TEST(ReferenceCurveTest, TauGoesOnAtTheSlopeOfTheNearestQuarter) {
  // First quarter of the improvement: 0.75 in 0.75 s; last: 0.75 in 1.5 s.
  EXPECT_DOUBLE_EQ(kCurve.Tau(5), -1);
  EXPECT_DOUBLE_EQ(kCurve.Tau(0.5), 6);
  EXPECT_DOUBLE_EQ(kCurve.Tau(100), -5) << "at most one run outside";
  EXPECT_DOUBLE_EQ(kCurve.Tau(-100), 10);
  EXPECT_DOUBLE_EQ(kCurve.Tau(std::numeric_limits<double>::quiet_NaN()), -5);
}

TEST(ReferenceCurveTest, TimeToIsTheEndOfTheFirstWindowThatGotThere) {
  EXPECT_EQ(kCurve.TimeTo(2.5), 3);
  EXPECT_EQ(kCurve.TimeTo(0.5), 5);
}

TEST(ReferenceCurveTest, TargetsLeaveAPercentOfTheImprovement) {
  EXPECT_DOUBLE_EQ(kCurve.LossForTarget(0.2), 3);
  EXPECT_DOUBLE_EQ(kCurve.LossForTarget(1), 4 - 0.99 * 3);
  EXPECT_EQ(kCurve.FindAccuracy(0.5)->seconds, 3);
  EXPECT_EQ(kCurve.FindAccuracy(0.9), nullptr);
}

TEST(ReferenceCurveTest, ACurveThatNeverFallsHasNoProgress) {
  const ReferenceCurve flat({{0, 1}, {5, 2}});
  EXPECT_EQ(flat.Tau(0.5), 0);
  EXPECT_EQ(flat.Tau(1.5), 0);
}

TEST(RunReferenceTest, LeavesTheClusterUntouchedAndRunsThePlannedSamples) {
  Workload workload;
  workload.optimizer.planned_samples = 128 * 20 * 50;
  SimulatedCluster cluster({.workload = workload, .workers = 4}, MakeConvergence(workload, {}, 1));
  const ReferenceCurve curve = RunReference(cluster);
  EXPECT_EQ(cluster.samples_seen(), 0);
  EXPECT_NEAR(curve.seconds(), cluster.nominal_seconds(), 0.15 * cluster.nominal_seconds());
  EXPECT_LT(curve.final_loss(), 0.7 * curve.initial_loss());
}

}  // namespace
}  // namespace dynamix
