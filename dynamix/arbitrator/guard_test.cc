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

// One worker, its times in ms.
Round TimedRound(int batch, double compute_ms, double iteration_ms, double noise_scale = kMissing) {
  Round round;
  round.seconds = 1;
  RoundEntry& entry = round.entries.emplace_back();
  entry.bounds = {.min = 4, .max = 1024};
  entry.start_batch = 32;
  entry.batch = batch;
  Report& report = entry.report.emplace();
  report.iterations = 20;
  report.local_batch = batch;
  report.compute_ms = compute_ms;
  report.iteration_ms = iteration_ms;
  report.training.noise_scale = noise_scale;
  return round;
}

// What the guard says in the last of ten rounds of `later`, after its measuring rounds of `first`
// and ten of `advised`.
Guard::State Verdict(const Round& first, const Round& advised, const Round& later) {
  Guard guard({});
  for (int i = 0; i < 3; ++i) guard.Observe(first);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(guard.Observe(advised), Guard::State::kAdvises);
  for (int i = 0; i < 9; ++i) guard.Observe(later);
  return guard.Observe(later);
}

// The advised batch (40: 727 samples/s) is a little slower than the one before (32: 800), so that it
// never counts as good and falling back to 32 stays possible.
TEST(GuardTest, WhatAllMachinesCanStillComputeIsHeldAgainstNobody) {
  const Round first = TimedRound(32, 32, 40), advised = TimedRound(40, 40, 55);
  // Four times slower machines: 182 samples/s >= 0.8 x 800 x (250 / 1000).
  EXPECT_EQ(Verdict(first, advised, TimedRound(40, 160, 220)), Guard::State::kAdvises);
  // The same 182 samples/s from machines as fast as before is the policy's doing.
  EXPECT_EQ(Verdict(first, advised, TimedRound(40, 40, 220)), Guard::State::kFallsBack);
  // Three times the time on machines that are twice as slow: 242 < 0.8 x 800 x 0.5.
  EXPECT_EQ(Verdict(first, advised, TimedRound(40, 80, 165)), Guard::State::kFallsBack);
}

// At noise scale 100, 32 samples in 40 ms are 800 x 100 / 132 = 606 useful samples/s; 400 in 400 ms
// are more samples (1,000/s) and fewer useful ones: 1,000 x 100 / 500 = 200.
TEST(GuardTest, SamplesBeyondTheNoiseScaleCountForLess) {
  const Round first = TimedRound(32, 32, 40, 100), advised = TimedRound(36, 36, 44, 100);
  EXPECT_EQ(Verdict(first, advised, TimedRound(400, 390, 400, 100)), Guard::State::kFallsBack);
  EXPECT_EQ(Verdict(first, advised, TimedRound(400, 390, 400, 1e9)), Guard::State::kAdvises)
      << "with that much noise every sample is useful";
}

TEST(ProgressTest, UsefulRatesAsWorkedByHand) {
  EXPECT_DOUBLE_EQ(UsefulRate(800, 100, 100), 400);
  EXPECT_DOUBLE_EQ(UsefulRate(1000, 400, 100), 200);
  EXPECT_DOUBLE_EQ(UsefulRate(800, 100, kMissing), 800) << "without a noise scale all are useful";
  EXPECT_DOUBLE_EQ(Throughput(TimedRound(32, 32, 40)), 800);
  EXPECT_DOUBLE_EQ(Capacity(TimedRound(40, 160, 220)), 250);
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
