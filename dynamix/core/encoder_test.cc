#include "dynamix/core/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dynamix/core/features.h"
#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

void ExpectSameRow(const float* a, const float* b, int width, double tolerance = 1e-5) {
  for (int i = 0; i < width; ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      EXPECT_TRUE(std::isnan(a[i]) && std::isnan(b[i])) << "column " << i;
    } else {
      EXPECT_NEAR(a[i], b[i], tolerance) << "column " << i;
    }
  }
}

float Local(const States& states, int worker, LocalFeature feature) {
  return states.local[worker * LocalWidth() + feature];
}
float Global(const States& states, GlobalFeature feature) { return states.team[feature]; }

TEST(EncoderTest, RowsHaveTheStatedWidths) {
  Rng rng(1);
  Encoder encoder;
  const States states = encoder.Encode(SampleRound(rng, 5));
  EXPECT_EQ(states.workers, 5);
  EXPECT_EQ(states.local.size(), 5u * LocalWidth());
  EXPECT_EQ(static_cast<int>(states.team.size()), TeamWidth());
  EXPECT_EQ(LocalColumns().size(), static_cast<std::size_t>(LocalWidth()));
  EXPECT_EQ(TeamColumns().size(), static_cast<std::size_t>(TeamWidth()));
}

TEST(EncoderTest, CompleteReportsLeaveOnlyTheSlopesOfTheFirstWindowMissing) {
  Rng rng(2);
  Encoder encoder;
  const Round round = SampleRound(rng, 4);
  const States first = encoder.Encode(round);
  EXPECT_TRUE(std::isnan(Global(first, kLossSlope)));
  EXPECT_TRUE(std::isnan(Global(first, kStepEfficiency)));
  EXPECT_TRUE(std::isnan(Global(first, kAccuracyGain)));
  const States second = encoder.Encode(round);
  for (float value : second.local) EXPECT_FALSE(std::isnan(value));
  for (float value : second.team) EXPECT_FALSE(std::isnan(value));
}

// Speeds of 2 and 4 samples a millisecond; the third worker has not reported yet.
TEST(EncoderTest, AWorkerNobodyMeasuredHasAnAveragesShare) {
  Rng rng(4);
  Round round = SampleRound(rng, 3);
  round.entries[0].batch = round.entries[0].report->local_batch = 20;
  round.entries[1].batch = round.entries[1].report->local_batch = 40;
  round.entries[0].report->compute_ms = round.entries[1].report->compute_ms = 10;
  round.entries[2].report.reset();
  const States states = Encoder().Encode(round);
  EXPECT_NEAR(states.shares[0], 2.0 / 9, 1e-9);
  EXPECT_NEAR(states.shares[1], 4.0 / 9, 1e-9);
  EXPECT_NEAR(states.shares[2], 3.0 / 9, 1e-9);
}

TEST(EncoderTest, EveryValueLiesInItsRange) {
  Rng rng(3);
  for (int trial = 0; trial < 50; ++trial) {
    Encoder encoder;
    const States states = encoder.Encode(SampleRound(rng, 1 + static_cast<int>(rng.Below(20))));
    for (int i = 0; i < states.workers; ++i) {
      for (int f = 0; f < kLocalFeatureCount; ++f) {
        const float x = states.local[i * LocalWidth() + f];
        if (std::isnan(x)) continue;
        EXPECT_GE(x, LocalFeatures()[f].low) << LocalFeatures()[f].name;
        EXPECT_LE(x, LocalFeatures()[f].high) << LocalFeatures()[f].name;
      }
    }
  }
}

// A job of equal workers whose compute is overhead + cost * batch, without noise.
Round AffineRound(double overhead_ms, double cost_ms, int batch, double communication_ms) {
  Rng rng(11);
  Round round = SampleRound(rng, 4);
  for (RoundEntry& entry : round.entries) {
    entry.batch = entry.report->local_batch = batch;
    entry.report->compute_ms = overhead_ms + cost_ms * batch;
    entry.report->communication_ms = communication_ms;
    entry.report->wait_ms = 0;
    entry.report->iteration_ms = entry.report->compute_ms + communication_ms;
  }
  return round;
}

TEST(EncoderTest, ChangesOfTheBatchShowWhichTimeIsFixed) {
  Encoder encoder;
  encoder.Encode(AffineRound(30, 1, 20, 10));
  States states;
  for (int batch : {30, 24, 36, 28, 30}) states = encoder.Encode(AffineRound(30, 1, batch, 10));
  // At batch 30: 30 ms of compute and 10 ms of communication are fixed, 30 ms are not.
  EXPECT_NEAR(Global(states, kTimeAtTwice), std::log2(100.0 / 70), 0.05);
  EXPECT_NEAR(Global(states, kTimeAtHalf), std::log2(55.0 / 70), 0.05);
}

TEST(EncoderTest, ADeviceThatSlowsDownDoesNotLookElastic) {
  Encoder encoder;
  States states;
  for (int batch : {20, 30, 24, 36, 28, 30})
    states = encoder.Encode(AffineRound(60, 0.5, batch, 10));
  const float before = Global(states, kTimeAtTwice);
  EXPECT_LT(before, 0.3);
  Round slow = AffineRound(240, 2, 30, 10);  // four times slower, at the same batch
  states = encoder.Encode(slow);
  EXPECT_NEAR(Global(states, kTimeAtTwice), before, 0.1);
}

TEST(EncoderTest, OrderOfPeersDoesNotMatter) {
  Rng rng(4);
  const Round round = SampleRound(rng, 6);
  Round shuffled = round;
  const int order[] = {3, 0, 5, 1, 4, 2};
  for (int i = 0; i < 6; ++i) shuffled.entries[i] = round.entries[order[i]];
  Encoder a, b;
  const States x = a.Encode(round), y = b.Encode(shuffled);
  ExpectSameRow(x.team.data(), y.team.data(), TeamWidth());
  for (int i = 0; i < 6; ++i) {
    ExpectSameRow(&x.local[order[i] * LocalWidth()], &y.local[i * LocalWidth()], LocalWidth());
    EXPECT_NEAR(x.shares[order[i]], y.shares[i], 1e-12);
  }
}

TEST(EncoderTest, UnitsDoNotMatter) {
  Rng rng(5);
  Round round = SampleRound(rng, 4);
  Round scaled = round;
  for (RoundEntry& entry : scaled.entries) {
    Report& r = *entry.report;
    for (double* ms : {&r.iteration_ms, &r.compute_ms, &r.wait_ms, &r.communication_ms})
      *ms *= 1e-3;
    for (double* us : {&r.network.smoothed_rtt_us, &r.network.minimum_rtt_us}) *us *= 1e3;
    r.network.delivery_mbps *= 1e6;
    for (double* bytes : {&r.host.memory_used_bytes, &r.host.memory_limit_bytes}) *bytes /= 1024;
    for (double* norm : {&r.training.gradient_norm, &r.training.gradient_norm_spread}) *norm *= 12;
    // A loss in other units has gradients in those units, and needs the inverse learning rate.
    r.training.loss *= 12;
    r.training.learning_rate /= 12;
  }
  scaled.base_learning_rate /= 12;
  Encoder a, b;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const States x = a.Encode(round), y = b.Encode(scaled);
    ExpectSameRow(x.team.data(), y.team.data(), TeamWidth());
    ExpectSameRow(x.local.data(), y.local.data(), 4 * LocalWidth());
  }
}

TEST(EncoderTest, ACopyOfTheClusterChangesOnlyWhatComparesTheGlobalBatch) {
  Rng rng(6);
  Round round = SampleRound(rng, 5);
  Round doubled = round;
  doubled.entries.insert(doubled.entries.end(), round.entries.begin(), round.entries.end());
  Encoder a, b;
  const States x = a.Encode(round);
  States y = b.Encode(doubled);
  // The global batch really is twice as large.
  EXPECT_NEAR(Global(y, kNoiseToBatch), Global(x, kNoiseToBatch) - 1, 1e-5);
  EXPECT_NEAR(Global(y, kBaseRatio), Global(x, kBaseRatio) + 1, 1e-5);
  // Landmarks do not grow with the number of workers.
  EXPECT_LT(Global(y, kGoodputGap), Global(x, kGoodputGap));
  EXPECT_LT(Global(y, kSoonestGap), Global(x, kSoonestGap));
  const std::vector<int> compare = {kNoiseToBatch, kBaseRatio, kGoodputGap, kSoonestGap};
  for (int f : compare) y.team[f] = x.team[f];
  ExpectSameRow(x.team.data(), y.team.data(), TeamWidth());
  for (int i = 0; i < 10; ++i) {
    for (int f : compare) y.local[i * LocalWidth() + kLocalFeatureCount + f] = x.team[f];
    ExpectSameRow(&x.local[i % 5 * LocalWidth()], &y.local[i * LocalWidth()], LocalWidth());
    EXPECT_NEAR(y.shares[i], x.shares[i % 5] / 2, 1e-12);
  }
}

TEST(EncoderTest, SharesFollowMeasuredSpeedAndSumToOne) {
  Rng rng(7);
  Round round = SampleRound(rng, 3);
  for (int i = 0; i < 3; ++i) {
    round.entries[i].batch = round.entries[i].report->local_batch = 100;
    round.entries[i].report->compute_ms = 100.0 * (i + 1);
  }
  Encoder encoder;
  const States states = encoder.Encode(round);
  const double sum = 1 + 1.0 / 2 + 1.0 / 3;
  EXPECT_NEAR(states.shares[0], 1 / sum, 1e-12);
  EXPECT_NEAR(states.shares[2], 1 / sum / 3, 1e-12);
  EXPECT_NEAR(Local(states, 0, kShareGap), std::log2(3 / sum), 1e-5);
}

TEST(EncoderTest, InactiveWorkersEnterNoMean) {
  Rng rng(8);
  Round round = SampleRound(rng, 4);
  Round smaller = round;
  smaller.entries.pop_back();
  round.entries[3].active = false;
  Encoder a, b;
  const States x = a.Encode(round), y = b.Encode(smaller);
  ExpectSameRow(x.team.data(), y.team.data(), TeamWidth());
  EXPECT_EQ(x.shares[3], 0);
}

TEST(EncoderTest, ALateWorkerIsMaskedAndKeepsItsShare) {
  Rng rng(9);
  Round round = SampleRound(rng, 4);
  Encoder encoder;
  const States before = encoder.Encode(round);
  round.entries[2].report.reset();
  const States after = encoder.Encode(round);
  EXPECT_TRUE(std::isnan(Local(after, 2, kWaitShare)));
  EXPECT_TRUE(std::isnan(Local(after, 2, kCpuUse)));
  EXPECT_FALSE(std::isnan(Local(after, 2, kBatchGrowth)));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(before.shares[i], after.shares[i], 1e-9);
}

TEST(EncoderTest, HostileNumbersBecomeMissingOrClipped) {
  Rng rng(10);
  const double inf = std::numeric_limits<double>::infinity();
  for (double bad : {kMissing, inf, -inf, -1.0, 1e300, -1e300, 0.0}) {
    Round round = SampleRound(rng, 3);
    Report& r = *round.entries[1].report;
    for (double* field :
         {&r.iteration_ms, &r.compute_ms, &r.wait_ms, &r.communication_ms,
          &r.network.smoothed_rtt_us, &r.network.minimum_rtt_us, &r.network.retransmission_ratio,
          &r.network.delivery_mbps, &r.host.cpu_use, &r.host.memory_used_bytes,
          &r.host.memory_limit_bytes, &r.training.loss, &r.training.noise_scale,
          &r.training.learning_rate, &r.training.gradient_norm})
      *field = bad;
    Encoder encoder;
    encoder.Encode(round);
    const States states = encoder.Encode(round);
    for (float value : states.local) EXPECT_FALSE(std::isinf(value));
    for (float value : states.team) EXPECT_FALSE(std::isinf(value));
    const double sum = std::accumulate(states.shares.begin(), states.shares.end(), 0.0);
    EXPECT_NEAR(sum, 1, 1e-9);
    for (double share : states.shares) EXPECT_GE(share, 0);
  }
}

TEST(EncoderTest, RemembersTheLastChangeOfABatchAndItsAge) {
  Rng rng(11);
  Round round = SampleRound(rng, 2);
  round.entries[0].batch = 64;
  Encoder encoder;
  encoder.Encode(round);
  round.entries[0].batch = 96;
  EXPECT_NEAR(Local(encoder.Encode(round), 0, kLastChange), std::log2(1.5), 1e-6);
  const States later = encoder.Encode(round);
  EXPECT_NEAR(Local(later, 0, kLastChange), std::log2(1.5), 1e-6);
  EXPECT_NEAR(Local(later, 0, kChangeAge), 1 / 5.0, 1e-6);
}

TEST(EncoderTest, ResetForgetsTheJob) {
  Rng rng(12);
  const Round a = SampleRound(rng, 4), b = SampleRound(rng, 3);
  Encoder used, fresh;
  used.Encode(a);
  used.Reset();
  const States x = used.Encode(b), y = fresh.Encode(b);
  ExpectSameRow(x.team.data(), y.team.data(), TeamWidth(), 0);
  EXPECT_EQ(x.shares, y.shares);
}

TEST(FeaturesTest, NamesAreUniqueAndRangesOrdered) {
  std::vector<std::string> names;
  for (const auto list : {LocalFeatures(), GlobalFeatures()}) {
    for (const Feature& feature : list) {
      EXPECT_LT(feature.low, feature.high) << feature.name;
      EXPECT_FALSE(feature.meaning.empty()) << feature.name;
      names.emplace_back(feature.name);
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// Policy files carry this hash. When a feature changes on purpose, relearn the shipped policy and
// update it.
TEST(FeaturesTest, HashIsTheOneOfTheShippedPolicy) {
  EXPECT_EQ(FeatureHash(), 0x4cbcfd82cddfc4b6ULL);
}

TEST(EncoderTest, AWarmupIsSeenAsTheCosineItBecomes) {
  Rng rng(21);
  Round round = SampleRound(rng, 2);
  round.schedule = Schedule::kWarmup;
  Encoder encoder;
  const States states = encoder.Encode(round);
  EXPECT_EQ(Global(states, kScheduleCosine), 1);
  EXPECT_EQ(Global(states, kScheduleStep), 0);
}

TEST(EncoderTest, TheGapToATargetIsMeasuredInWhatTheTargetIs) {
  Rng rng(22);
  Round round = SampleRound(rng, 2);
  for (RoundEntry& entry : round.entries) {
    entry.report->training.accuracy = 0.6;
    entry.report->training.loss = 3;
  }
  const auto gap = [&round](double accuracy, double loss) {
    round.target_accuracy = accuracy;
    round.target_loss = loss;
    Encoder encoder;
    return Global(encoder.Encode(round), kTargetGap);
  };
  EXPECT_FLOAT_EQ(gap(0.9, kMissing), 2);  // an error of 0.4 over 0.1
  EXPECT_FLOAT_EQ(gap(kMissing, 1.5), 1);  // a loss of 3 over 1.5
  EXPECT_FLOAT_EQ(gap(kMissing, 6), -1);
  EXPECT_TRUE(std::isnan(gap(kMissing, kMissing)));
}

}  // namespace
}  // namespace dynamix
