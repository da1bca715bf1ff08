#include "dynamix/arbitrator/guard.h"

#include <gtest/gtest.h>

#include <functional>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/progress.h"
#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/core/rng.h"
#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

struct Course {
  int fallbacks = 0;
  std::vector<int> sizes;  // of the first worker
};

Course Serve(const PolicySpec& policy, int rounds, const GuardOptions& guard = {}) {
  FakeJob job(3, 200, 1e9);
  ArbitratorOptions options;
  options.guard = guard;
  Arbitrator arbitrator(policy, std::move(options));
  Course course;
  Round round = job.Reset();
  for (int i = 0; i < rounds; ++i) {
    round.rule = LearningRateRule::kLinear;
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
  EXPECT_EQ(course.sizes[0], 60) << "from the first round on";
  EXPECT_EQ(course.sizes.back(), 60);
}

TEST(GuardTest, APolicyThatHarmsIsStoppedAndGetsAnotherChanceLater) {
  const Course course = Serve(Fixed(1000), 200);
  EXPECT_GE(course.fallbacks, 2);
  int harmed = 0;
  for (const int size : course.sizes) harmed += size == 1000 ? 1 : 0;
  EXPECT_LT(harmed, 40) << "of 200 rounds";
  EXPECT_EQ(course.sizes[15], 16) << "a sixth of 96, on the slowest of three workers";
}

// Two workers of 1 ms per sample, 8 ms of exchange, start 16 each and a base batch of 32, rule none:
// a step is worth 1 - 0.06 - 0.3 w 32 / B with w = noise / (noise + 32): after 100 iterations half of
// the noise has gathered.
Round PlainRound(int batch, double noise, double slower = 1) {
  Round round;
  round.seconds = 1;
  round.base_batch = 32;
  for (int i = 0; i < 2; ++i) {
    RoundEntry& entry = round.entries.emplace_back();
    entry.bounds = {.min = 1, .max = 1024};
    entry.start_batch = 16;
    entry.batch = batch;
    Report& report = entry.report.emplace();
    report.window = 4;
    report.iterations = 20;
    report.local_batch = batch;
    report.compute_ms = slower * batch;
    report.communication_ms = 8;
    report.iteration_ms = slower * batch + 8;
    report.training.noise_scale = noise;
  }
  return round;
}

double StandingOf(const std::vector<Round>& rounds) {
  Guard guard({});
  for (const Round& round : rounds) guard.Observe(round);
  return guard.standing();
}

TEST(GuardTest, StandingAsWorkedByHand) {
  // Without an overhead, which one batch size cannot tell from cost, 0.1 of compute is taken for it:
  // 64 samples in 0.1 x 64 + 0.9 x 64 = 64 ms, 16 in 6.4 + 14.4 = 20.8 ms; 8 ms of exchange each.
  const double w = 96.0 / (96 + 32), alone = (0.94 - 0.3 * w) / (20.8 + 8);
  const double now = (0.94 - 0.3 * w * 32 / 128) / (64 + 8);
  EXPECT_NEAR(StandingOf({PlainRound(64, 96)}), now / alone, 1e-9);
  EXPECT_NEAR(StandingOf({PlainRound(64, kMissing)}), (128 / 72.0) / (32 / 28.8), 1e-9)
      << "without a noise scale every sample counts";
  // Machines that are four times slower are slower for both.
  const double slow = (0.94 - 0.3 * w * 32 / 128) / (256 + 8) / ((0.94 - 0.3 * w) / (83.2 + 8));
  EXPECT_NEAR(StandingOf({PlainRound(64, 96, 4)}), slow, 1e-9);
  EXPECT_TRUE(IsMissing(StandingOf({PlainRound(16, 96)}))) << "nothing was changed";
}

TEST(GuardTest, SlowerMachinesAreNotThePolicysFault) {
  Guard guard({});
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(guard.Observe(PlainRound(20, 1e9, i < 20 ? 1 : 4)), Guard::State::kAdvises);
}

TEST(GuardTest, TheMedianOfSomeRoundsDecides) {
  Guard guard({.rounds = 3, .tolerance = 0.8, .hold = 4});
  const Round good = PlainRound(20, 1e9), bad = PlainRound(200, 1);
  EXPECT_EQ(guard.Observe(good), Guard::State::kAdvises) << "from the first measurement on";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(guard.Observe(good), Guard::State::kAdvises);
  EXPECT_EQ(guard.Observe(bad), Guard::State::kAdvises) << "one of three";
  EXPECT_EQ(guard.Observe(bad), Guard::State::kFallsBack);
  EXPECT_EQ(guard.batches(), std::vector<int>(2, 16));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(guard.Observe(PlainRound(16, 1)), Guard::State::kFallsBack);
  EXPECT_EQ(guard.Observe(PlainRound(16, 1)), Guard::State::kAdvises) << "another chance";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(guard.Observe(bad), Guard::State::kAdvises);
  EXPECT_EQ(guard.Observe(bad), Guard::State::kFallsBack);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(guard.Observe(PlainRound(16, 1)), Guard::State::kFallsBack);
  EXPECT_EQ(guard.Observe(PlainRound(16, 1)), Guard::State::kAdvises) << "twice as long";
  EXPECT_EQ(guard.fallbacks(), 2);
}

TEST(GuardTest, InAFallbackTheStartOfThoseWhoAreThereIsShared) {
  Guard guard({.rounds = 1});
  guard.Observe(PlainRound(200, 1));
  ASSERT_EQ(guard.Observe(PlainRound(200, 1)), Guard::State::kFallsBack);
  Round round = PlainRound(16, 1);
  round.entries[1].active = false;
  guard.Observe(round);
  EXPECT_EQ(guard.batches(), (std::vector<int>{16, 0})) << "one has left";
  guard.Observe(PlainRound(16, 1));
  EXPECT_EQ(guard.batches(), (std::vector<int>{16, 16})) << "and is back";
}

// The start batches as the user gave them are nobody's advice, however unequal the workers, and
// whatever becomes of the loss.
// Two workers whose times do not depend on their batches: a split by time has no natural sum.
TEST(GuardTest, AFallbackIsOfTheStartAlsoWhereTimesAreFlat) {
  Guard guard({.rounds = 1, .hold = 5});
  Rng rng(1);
  for (int index = 0; index < 40; ++index) {
    Round round = SampleRound(rng, 2);
    round.index = index;
    for (RoundEntry& entry : round.entries) {
      entry.bounds = {.min = 4, .max = 4096};
      entry.start_batch = 64;
      entry.batch = entry.report->local_batch = 900 + 10 * static_cast<int>(rng.Below(20));
      entry.report->compute_ms = 50 + 1e-6 * entry.batch + rng.Uniform();
      entry.report->communication_ms = 1;
      entry.report->iteration_ms = 55;
      entry.report->training.noise_scale = 10;
      entry.report->training.loss = 1 + index;  // explodes
    }
    if (guard.Observe(round) != Guard::State::kFallsBack) continue;
    ASSERT_EQ(guard.batches().size(), 2u);
    EXPECT_NEAR(guard.batches()[0] + guard.batches()[1], 128, 1);
  }
  EXPECT_GT(guard.fallbacks(), 0);
}

TEST(GuardTest, AJobThatRunsItsStartIsLeftAsItIs) {
  EXPECT_EQ(Serve(Fixed(FakeJob::kStart), 60).fallbacks, 0);
  Guard guard({});
  for (int i = 0; i < 20; ++i) {
    Round round = PlainRound(16, 96);
    for (RoundEntry& entry : round.entries) entry.report->training.loss = i < 10 ? 1 : 100;
    EXPECT_EQ(guard.Observe(round), Guard::State::kAdvises);
  }
}

TEST(GuardTest, OffMeansOff) {
  const Course course = Serve(Fixed(1000), 40, {.on = false});
  EXPECT_EQ(course.fallbacks, 0);
  EXPECT_EQ(course.sizes[0], 1000);
  EXPECT_EQ(course.sizes.back(), 1000);
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
  EXPECT_EQ(guard.batches()[0] + guard.batches()[1], 64) << "the start in sum";
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
