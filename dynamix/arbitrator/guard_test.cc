#include "dynamix/arbitrator/guard.h"

#include <gtest/gtest.h>

#include <functional>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/progress.h"
#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

struct Course {
  int fallbacks = 0;
  std::vector<int> sizes;  // of the first worker
};

Course Serve(const PolicySpec& policy, int rounds, const GuardOptions& guard = {},
             double slow_from = 1e9) {
  FakeJob job(3, 200, 1e9);
  ArbitratorOptions options;
  options.guard = guard;
  Arbitrator arbitrator(policy, std::move(options));
  Course course;
  Round round = job.Reset();
  for (int i = 0; i < rounds; ++i) {
    if (i >= slow_from) {
      for (RoundEntry& entry : round.entries)
        for (double* ms : {&entry.report->compute_ms, &entry.report->iteration_ms}) *ms *= 4;
    }
    const Decision decision = arbitrator.Step(round);
    course.sizes.push_back(decision.sizes[0]);
    round = job.Step(decision.sizes);
  }
  course.fallbacks = arbitrator.guard().fallbacks();
  return course;
}

TEST(GuardTest, APolicyThatHelpsIsLeftAlone) {
  const Course course = Serve(Fixed(60), 40);
  EXPECT_EQ(course.fallbacks, 0);
  EXPECT_EQ(course.sizes[0], FakeJob::kStart) << "the rate before is measured first";
  EXPECT_EQ(course.sizes.back(), 60);
}

TEST(GuardTest, APolicyThatHarmsIsStoppedAndGetsAnotherChanceLater) {
  const Course course = Serve(Fixed(4), 200);
  EXPECT_GE(course.fallbacks, 2);
  int harmed = 0;
  for (const int size : course.sizes) harmed += size == 4 ? 1 : 0;
  EXPECT_LT(harmed, 40) << "of 200 rounds";
  EXPECT_EQ(course.sizes[15], FakeJob::kStart) << "the last good batch";
}

TEST(GuardTest, SlowerMachinesAreNotThePolicysFault) {
  EXPECT_EQ(Serve(Fixed(60), 60, {}, 20).fallbacks, 0);
}

TEST(GuardTest, OffMeansOff) {
  const Course course = Serve(Fixed(4), 40, {.on = false});
  EXPECT_EQ(course.fallbacks, 0);
  EXPECT_EQ(course.sizes[0], 4);
}

TEST(GuardTest, AnExplodingLossIsStopped) {
  Guard guard({});
  FakeJob job(2, 200, 1e9);
  Round round = job.Reset();
  Guard::State state = Guard::State::kMeasures;
  for (int i = 0; i < 12; ++i) {
    for (RoundEntry& entry : round.entries) {
      entry.batch = i < 6 ? 32 : 64;
      entry.report->training.loss = i < 6 ? 1 : 10;
    }
    state = guard.Observe(round);
  }
  EXPECT_EQ(state, Guard::State::kFallsBack);
  EXPECT_EQ(guard.good_batches(), std::vector<int>(2, 32));
}

// Rounds in fallback of 100, for a job with this loss in round i, whose policy changes batches.
int FallbacksWithLoss(const std::function<double(int)>& loss) {
  Guard guard({});
  FakeJob job(2, 200, 1e9);
  Round round = job.Reset();
  int fallbacks = 0;
  for (int i = 0; i < 100; ++i) {
    for (RoundEntry& entry : round.entries) {
      entry.batch = 32 + i % 2;
      entry.report->training.loss = loss(i);
    }
    fallbacks += guard.Observe(round) == Guard::State::kFallsBack ? 1 : 0;
  }
  return fallbacks;
}

TEST(GuardTest, ALossMayBeNegativeOrPassThroughZero) {
  EXPECT_EQ(FallbacksWithLoss([](int i) { return -1 - 0.1 * i; }), 0) << "a log-likelihood";
  EXPECT_EQ(FallbacksWithLoss([](int i) { return 1 - 0.02 * i + 0.01 * (i % 3); }), 0);
  Rng rng(1);
  EXPECT_EQ(FallbacksWithLoss([&](int) { return 0.02 * rng.Normal(); }), 0) << "a policy loss";
}

TEST(GuardTest, AnExplodingNegativeLossIsStopped) {
  EXPECT_GT(FallbacksWithLoss([](int i) { return i < 20 ? -2 - 0.01 * i : 3.0; }), 0);
}

TEST(GuardTest, RoundsWithoutMeasurementsChangeNothing) {
  Guard guard({});
  FakeJob job(2, 200, 1e9);
  Round round = job.Reset();
  for (RoundEntry& entry : round.entries) entry.report = Report{.iterations = 5};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(guard.Observe(round), Guard::State::kMeasures);
}

TEST(ProgressTest, ARecordedCurveIsAClock) {
  const RecordedCurve curve({{0, 2.0}, {10, 2.0}, {20, 1.0}, {30, 1.0}, {40, 0.5}});
  EXPECT_DOUBLE_EQ(curve.Tau(3), 0);
  EXPECT_DOUBLE_EQ(curve.Tau(0.001), 40);
  EXPECT_LT(curve.Tau(1.8), curve.Tau(1.2));
  EXPECT_DOUBLE_EQ(curve.seconds(), 40);
  EXPECT_TRUE(RecordedCurve({{0, kMissing}}).empty());
}

TEST(ProgressTest, OwnProgressComparesWithTheRecentPace) {
  ProgressClock clock;
  Round round;
  round.seconds = 2;
  round.entries.resize(1);
  round.entries[0].report.emplace();
  double loss = 4, steady = 0, faster = 0;
  for (int i = 0; i < 60; ++i) {
    loss *= i < 50 ? 0.99 : 0.97;
    round.entries[0].report->training.loss = loss;
    const double gained = clock.Advance(round);
    if (i == 49) steady = gained;
    if (i == 54) faster = gained;
  }
  EXPECT_NEAR(steady, 2, 0.2) << "as fast as lately: one second per second";
  EXPECT_GT(faster, 3);
}

TEST(ProgressTest, OwnProgressIsReadFromNegativeLossesToo) {
  ProgressClock clock;
  Round round;
  round.seconds = 2;
  round.entries.resize(1);
  round.entries[0].report.emplace();
  double loss = -1, steady = 0, faster = 0;
  for (int i = 0; i < 60; ++i) {
    loss *= i < 50 ? 1.01 : 1.03;  // falls
    round.entries[0].report->training.loss = loss;
    const double gained = clock.Advance(round);
    if (i == 49) steady = gained;
    if (i == 54) faster = gained;
  }
  EXPECT_NEAR(steady, 2, 0.2);
  EXPECT_GT(faster, 3);
}

TEST(ArbitratorTest, ASwappedPolicyDecidesTheNextRound) {
  FakeJob job(3, 200, 1e9);
  ArbitratorOptions options;
  options.guard.on = false;
  Arbitrator arbitrator(Fixed(40), std::move(options));
  const Round round = job.Reset();
  EXPECT_EQ(arbitrator.Step(round).sizes[0], 40);
  arbitrator.SetPolicy(Fixed(50));
  EXPECT_EQ(arbitrator.Step(round).sizes[0], 50);
}

}  // namespace
}  // namespace dynamix
