#include "dynamix/policies/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/policies/make_policy.h"

namespace dynamix {
namespace {

// A small closed loop: compute = overhead + batch / speed, fixed communication and noise scale.
class Loop {
 public:
  Loop(std::string_view policy, std::vector<double> speeds, int start)
      : policy_(MakePolicy(policy)), speeds_(std::move(speeds)) {
    Rng rng(1);
    round_ = SampleRound(rng, static_cast<int>(speeds_.size()));
    for (RoundEntry& entry : round_.entries) {
      entry.bounds = {.min = 4, .max = 4096};
      entry.batch = entry.start_batch = start;
    }
  }

  double overhead_ms = 0, communication_ms = 10, noise_scale = 500;

  void Run(int rounds) {
    Rng rng(2);
    for (int step = 0; step < rounds; ++step) {
      double slowest = 0;
      for (std::size_t i = 0; i < speeds_.size(); ++i) {
        Report& report = *round_.entries[i].report;
        report.local_batch = round_.entries[i].batch;
        report.compute_ms = overhead_ms + round_.entries[i].batch / speeds_[i];
        report.communication_ms = communication_ms;
        report.training.noise_scale = noise_scale;
        slowest = std::max(slowest, report.compute_ms);
      }
      for (RoundEntry& entry : round_.entries)
        entry.report->iteration_ms = slowest + communication_ms;
      const States states = encoder_.Encode(round_);
      const auto sizes = Apply(round_, states.shares, policy_->Decide(round_, states, rng), {});
      for (std::size_t i = 0; i < sizes.size(); ++i) round_.entries[i].batch = sizes[i];
    }
  }

  // Slowest over mean compute time.
  double Imbalance() const {
    double slowest = 0, sum = 0;
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      const double t = overhead_ms + round_.entries[i].batch / speeds_[i];
      slowest = std::max(slowest, t);
      sum += t;
    }
    return slowest / (sum / speeds_.size());
  }

  std::vector<double>& speeds() { return speeds_; }
  double global_batch() const { return round_.GlobalBatch(); }
  int batch(int worker) const { return round_.entries[worker].batch; }

 private:
  std::unique_ptr<Policy> policy_;
  std::vector<double> speeds_;
  Round round_;
  Encoder encoder_;
};

TEST(StaticPolicyTest, HoldsTheStartOrItsOwnSize) {
  Loop hold("static", {1, 4}, 64), fixed("static:32", {1, 4}, 64);
  hold.Run(5);
  fixed.Run(5);
  EXPECT_EQ(hold.batch(0), 64);
  EXPECT_EQ(fixed.batch(1), 32);
}

TEST(BalancedPolicyTest, EqualisesComputeTimesAtAConstantGlobalBatch) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.Run(3);
  EXPECT_LT(loop.Imbalance(), 1.06);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

TEST(BalancedPolicyTest, EqualisesAlsoWhenTimesAreNotProportionalToBatches) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.overhead_ms = 60;
  loop.Run(20);
  EXPECT_LT(loop.Imbalance(), 1.06);
}

TEST(BalancedPolicyTest, FollowsASlowdown) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.Run(5);
  loop.speeds()[0] = 1;
  loop.Run(6);
  EXPECT_LT(loop.Imbalance(), 1.08);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

// Two workers of equal batch, whose shares of the global batch differ from it by so many percent,
// up and down. Granularity 1, so half a sample is rounding.
std::vector<int> BalancedSizes(int batch, double percent) {
  Round round;
  for (int i = 0; i < 2; ++i) {
    RoundEntry& entry = round.entries.emplace_back();
    entry.bounds = {.min = 1, .max = 100000};
    entry.start_batch = entry.batch = batch;
  }
  States states;
  states.workers = 2;
  states.shares = {0.5 * (1 + percent / 100), 0.5 * (1 - percent / 100)};
  Rng rng(1);
  const auto policy = MakePolicy("balanced");
  return Apply(round, states.shares, policy->Decide(round, states, rng), {});
}

// The dead band is 5 % of a batch, whatever its size: 50 of 1,000 samples, 500 of 10,000.
TEST(BalancedPolicyTest, HoldsJustInsideItsDeadBandAndMovesJustOutside) {
  for (const int batch : {1000, 10000}) {
    EXPECT_EQ(BalancedSizes(batch, 4.9), std::vector<int>(2, batch)) << batch;
    const std::vector<int> moved = BalancedSizes(batch, 5.2);
    EXPECT_NEAR(moved[0], 1.052 * batch, 1) << batch;
    EXPECT_NEAR(moved[1], 0.948 * batch, 1) << batch;
  }
}

TEST(NoiseScalePolicyTest, BringsTheGlobalBatchToTheNoiseScale) {
  Loop loop("noise_scale", {1, 2}, 16);
  loop.noise_scale = 900;
  loop.Run(30);
  EXPECT_NEAR(loop.global_batch() / 900, 1, 0.12);
  loop.noise_scale = 100;
  loop.Run(40);
  EXPECT_NEAR(loop.global_batch() / 100, 1, 0.12);
}

TEST(GoodputPolicyTest, FindsTheBatchThatMaximisesGoodput) {
  // One speed, so iteration = B / 2 + 40 ms and goodput = B / (B / 2 + 40) / (noise + B): its
  // maximum is at B = sqrt(80 * noise) = 200.
  Loop loop("goodput", {1, 1}, 64);
  loop.communication_ms = 40;
  loop.noise_scale = 500;
  loop.Run(40);
  const auto goodput = [](double b) { return b / (b / 2 + 40) / (500 + b); };
  EXPECT_GT(goodput(loop.global_batch()), 0.98 * goodput(200));
}

TEST(GoodputPolicyTest, GrowsTheBatchWithTheNoise) {
  Loop quiet("goodput", {1, 2}, 64), noisy("goodput", {1, 2}, 64);
  quiet.noise_scale = 50;
  noisy.noise_scale = 20000;
  quiet.Run(40);
  noisy.Run(40);
  EXPECT_LT(quiet.global_batch(), noisy.global_batch());
  EXPECT_LT(noisy.Imbalance(), 1.1);
}

TEST(MakePolicyTest, RefusesUnknownNamesAndBadSizes) {
  EXPECT_THROW(MakePolicy("greedy"), InputError);
  EXPECT_THROW(MakePolicy("static:0"), InputError);
  EXPECT_THROW(MakePolicy("static:12x"), InputError);
  EXPECT_TRUE(IsRule("static:x"));
  EXPECT_FALSE(IsRule("policies/default.safetensors"));
  for (const std::string& name : RuleNames()) EXPECT_EQ(MakePolicy(name)->name(), name);
}

}  // namespace
}  // namespace dynamix
