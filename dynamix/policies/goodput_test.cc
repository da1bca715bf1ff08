// The goodput rule against the published formula, and on times worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "dynamix/policies/testing/closed_loop.h"

namespace dynamix {
namespace {

// Pollux's goodput, term by term as AdaptDL computes it, for equal workers, because Pollux gives all
// the same batch. The exponent gamma of T_step is 1: what a worker measures of the exchange is the
// part that compute does not hide.
struct Pollux {
  double replicas, alpha_ms, beta_ms;  // compute time alpha + beta b
  double network_ms;
  double sqr, var;  // squared norm of the gradient; variance of its mean over the initial batch
  double initial_batch;

  double operator()(double batch) const {
    const double step_ms = alpha_ms + beta_ms * batch / replicas + network_ms;
    const double scale = batch / initial_batch;
    const double gain = (var + sqr) / (var / scale + sqr);
    return batch / step_ms * (gain / scale);
  }
};

// Four workers that take 2 ms a sample. The rule has seen windows at other batches, so that it
// knows the same overhead and cost as the formula.
Loop Measured(std::string_view policy, double noise, double network_ms, double overhead_ms) {
  Loop loop(policy, {0.5, 0.5, 0.5, 0.5}, 64);
  loop.noise_scale = noise;
  loop.communication_ms = network_ms;
  loop.overhead_ms = overhead_ms;
  loop.Show({64, 32, 128, 48, 96, 64});
  return loop;
}

// Pollux's paper writes efficiency with the noise scale phi and the initial batch m_0, AdaptDL with
// variances: (phi + m_0) / (phi + m) and ((var + sqr) / (var / s + sqr)) / s are one.
TEST(GoodputPolicyTest, BothPublishedFormsOfTheFormulaAreOne) {
  for (const double noise : {60.0, 600.0, 6000.0}) {
    const Pollux pollux{4, 30, 2, 40, 1, noise / 256, 256};
    for (const double batch : {32.0, 256.0, 3000.0}) {
      const double throughput = batch / (30 + 2 * batch / 4 + 40);
      const double efficiency = (noise + 256) / (noise + batch);
      EXPECT_NEAR(pollux(batch) / (throughput * efficiency), 1, 1e-9);
    }
  }
}

TEST(GoodputPolicyTest, ChoosesTheBatchOfThePublishedFormula) {
  int settings = 0;
  double furthest = 0;  // docs/results.md shows it
  for (const double noise : {60.0, 600.0, 6000.0}) {
    for (const double network : {2.0, 40.0, 400.0}) {
      for (const double overhead : {1.0, 30.0}) {
        Loop loop = Measured("goodput:gain=0:scale=1", noise, network, overhead);
        loop.Run(10);
        // The same measurements in Pollux's terms: noise scale = initial batch * var / sqr.
        const Pollux pollux{4, overhead, 2, network, 1, noise / 256, 256};
        const double best = BatchOfMost(pollux);
        EXPECT_GT(pollux(loop.global_batch()), 0.998 * pollux(best));
        const double away = std::abs(std::log2(loop.global_batch() / best));
        EXPECT_LT(away, 0.2) << noise << " " << network << " " << overhead;
        furthest = std::max(furthest, away);
        ++settings;
      }
    }
  }
  RecordProperty("settings", settings);
  RecordProperty("furthest", std::to_string(furthest));
}

// goodput(B) = B / (a + B / 2) / (noise + B), a = overhead + exchange, is highest where
// B^2 / 2 = a noise. With noise 800 and a = 4: B = 80; with 36 ms of overhead more, B = 253.
TEST(GoodputPolicyTest, AnOverheadAsksForALargerBatch) {
  Loop light = Measured("goodput:gain=0:scale=1", 800, 4, 0),
       heavy = Measured("goodput:gain=0:scale=1", 800, 4, 36);
  light.Run(10);
  heavy.Run(10);
  EXPECT_NEAR(light.global_batch(), 80, 8);
  EXPECT_NEAR(heavy.global_batch(), 253, 20);
}

// A quarter of the noise scale, half the batch: B^2 / 2 = a noise.
TEST(GoodputPolicyTest, ItsScaleIsAFactorOnTheNoiseScale) {
  Loop loop = Measured("goodput:gain=0:scale=0.25", 800, 4, 36);
  loop.Run(10);
  EXPECT_NEAR(loop.global_batch(), 126, 10);
}

TEST(GoodputPolicyTest, AWorkerWithMoreOverheadGetsFewerSamples) {
  Loop loop("goodput", {1, 1}, 100);
  loop.noise_scale = 1000;
  loop.extra_ms = {50, 0};
  loop.Run(20);
  EXPECT_LT(loop.Imbalance(), 1.05);
  EXPECT_NEAR(loop.batch(1) - loop.batch(0), 50, 10);
}

TEST(GoodputPolicyTest, FollowsAJumpOfSpeedInOneWindow) {
  Loop loop("goodput:overhead=0", {1, 1}, 100);
  loop.noise_scale = 1000;
  loop.Run(8);
  EXPECT_NEAR(loop.batch(0), loop.batch(1), 1);
  loop.speeds()[0] = 0.25;
  loop.Run(1);
  EXPECT_NEAR(static_cast<double>(loop.batch(1)) / loop.batch(0), 4, 0.2);
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

}  // namespace
}  // namespace dynamix
