#include "dynamix/simulator/quadratic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

// One direction of curvature 2 that starts at x = 1, gradient variance 4 per sample.
QuadraticOptions OneDirection() {
  QuadraticOptions options;
  options.dimensions = 1;
  options.curvature = 2;
  options.initial_loss = 1;
  options.noise_scale = 1;
  options.noise_floor = 1;
  options.irreducible_loss = 0.25;
  options.held_out_gap = 0;
  return options;
}

OptimizerOptions PlainSgd(double learning_rate, double momentum) {
  OptimizerOptions optimizer;
  optimizer.learning_rate = learning_rate;
  optimizer.momentum = momentum;
  optimizer.planned_samples = 1e6;
  return optimizer;
}

TEST(QuadraticTest, PlainSgdMatchesHandWorkedSteps) {
  // (1 - 0.1 * 2)^2 * 1 + 0.1^2 * 4 / 4 = 0.65, then 0.64 * 0.65 + 0.01 = 0.426; loss = h x^2 / 2 =
  // x^2.
  Quadratic one(OneDirection(), PlainSgd(0.1, 0), 1);
  one.Run({2, 2}, 1);
  EXPECT_NEAR(one.ExcessLoss(), 0.65, 1e-12);
  one.Run({4}, 1);
  EXPECT_NEAR(one.ExcessLoss(), 0.426, 1e-12);
  EXPECT_NEAR(one.HeldOutLoss(), 0.676, 1e-12);

  Quadratic two(OneDirection(), PlainSgd(0.1, 0), 1);
  two.Run({4}, 2);
  EXPECT_NEAR(two.ExcessLoss(), 0.426, 1e-12);
}

TEST(QuadraticTest, MomentumMatchesHandWorkedSteps) {
  // v1 = 2 x0 + n1, x1 = x0 - 0.1 v1: E[x1^2] = 0.65 as without momentum.
  // x2 = x1 - 0.1 (0.5 v1 + 2 x1 + n2) = 0.54 x0 - 0.13 n1 - 0.1 n2, var n = 1.
  Quadratic model(OneDirection(), PlainSgd(0.1, 0.5), 1);
  model.Run({4}, 1);
  EXPECT_NEAR(model.ExcessLoss(), 0.65, 1e-12);
  model.Run({4}, 1);
  EXPECT_NEAR(model.ExcessLoss(), 0.54 * 0.54 + 0.0169 + 0.01, 1e-12);
}

// The velocity is in units of steps, so a change of the learning rate changes it too.
TEST(QuadraticTest, MomentumMatchesHandWorkedStepsWhenTheLearningRateChanges) {
  // Batch 4, rate 0.1, var n1 = 1:    v1 = 2 x0 + n1,                x1 = 0.8 x0 - 0.1 n1.
  // Batch 8, rate 0.2, var n2 = 0.5:  v2 = 0.5 v1 + 2 x1 + n2,       x2 = x1 - 0.2 v2
  //                                                               = 0.28 x0 - 0.16 n1 - 0.2 n2.
  OptimizerOptions optimizer = PlainSgd(0.1, 0.5);
  optimizer.rule = LearningRateRule::kLinear;
  optimizer.base_batch = 4;
  Quadratic model(OneDirection(), optimizer, 1);
  model.Run({4}, 1);
  EXPECT_NEAR(model.ExcessLoss(), 0.65, 1e-12);
  model.Run({8}, 1);
  EXPECT_NEAR(model.ExcessLoss(), 0.28 * 0.28 + 0.16 * 0.16 + 0.2 * 0.2 * 0.5, 1e-12);
}

TEST(QuadraticTest, ALongWindowEqualsManyShortOnes) {
  for (const int iterations : {1, 2, 7, 20, 31, 64}) {
    QuadraticOptions constant;
    constant.noise_floor = 1;
    Quadratic once(constant, PlainSgd(0.05, 0.9), 1), steps = once;
    once.Run({64, 32}, iterations);
    for (int i = 0; i < iterations; ++i) steps.Run({96}, 1);
    EXPECT_NEAR(once.ExcessLoss(), steps.ExcessLoss(), 1e-10 * once.ExcessLoss()) << iterations;
  }
}

TEST(QuadraticTest, AgreesWithStepByStepSgdWithinItsStandardError) {
  QuadraticOptions options;
  options.dimensions = 4;
  options.curvature_decay = 1.5;
  options.noise_scale = 200;
  options.noise_floor = 1;
  // The same spectrum, written out.
  std::vector<double> h(4), x(4), c(4);
  double parts = 0, trace = 0, norm = 0;
  for (int d = 0; d < 4; ++d) {
    h[d] = std::pow(d + 1, -1.5);
    parts += std::pow(d + 1, -options.loss_decay);
    trace += h[d];
  }
  for (int d = 0; d < 4; ++d) {
    const double loss = options.initial_loss * std::pow(d + 1, -options.loss_decay) / parts;
    x[d] = std::sqrt(2 * loss / h[d]);
    norm += h[d] * h[d] * x[d] * x[d];
  }
  for (int d = 0; d < 4; ++d) c[d] = options.noise_scale * norm * h[d] / trace;

  for (const double momentum : {0.0, 0.9}) {
    const double learning_rate = momentum == 0 ? 0.3 : 0.04;
    Quadratic model(options, PlainSgd(learning_rate, momentum), 1);
    model.Run({16, 16}, 15);
    model.Run({64, 64}, 15);
    Rng rng(7);
    double sum = 0, squares = 0;
    constexpr int kRuns = 20000;
    for (int run = 0; run < kRuns; ++run) {
      // Two windows with different batches need the state in between: 15 steps at 32, 15 at 128.
      double loss = 0;
      for (int d = 0; d < 4; ++d) {
        double position = x[d], velocity = 0;
        for (int step = 0; step < 30; ++step) {
          const double batch = step < 15 ? 32 : 128;
          velocity = momentum * velocity + h[d] * position + std::sqrt(c[d] / batch) * rng.Normal();
          position -= learning_rate * velocity;
        }
        loss += 0.5 * h[d] * position * position;
      }
      sum += loss;
      squares += loss * loss;
    }
    const double mean = sum / kRuns;
    const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
    EXPECT_NEAR(model.ExcessLoss(), mean, 4 * error) << "momentum " << momentum;
    EXPECT_LT(error, 0.02 * mean);
  }
}

TEST(QuadraticTest, TheFloorOfTheLossFallsWithTheBatch) {
  OptimizerOptions optimizer = PlainSgd(0.05, 0.9);
  QuadraticOptions options;
  options.noise_floor = 1;
  Quadratic small(options, optimizer, 1), large(options, optimizer, 1);
  for (int window = 0; window < 2000; ++window) {
    small.Run({32, 32}, 20);
    large.Run({256, 256}, 20);
  }
  EXPECT_NEAR(small.ExcessLoss() / large.ExcessLoss(), 8, 0.1);
}

TEST(QuadraticTest, TheNoiseScaleStartsAsAskedAndGrows) {
  QuadraticOptions options;
  options.noise_scale = 50;
  Quadratic model(options, PlainSgd(0.05, 0.9), 1);
  EXPECT_NEAR(model.TrueNoiseScale(), 50, 1e-9);
  for (int window = 0; window < 100; ++window) model.Run({64, 64}, 20);
  EXPECT_GT(model.TrueNoiseScale(), 200);
}

TEST(QuadraticTest, TheMeasuredNoiseScaleIsNearTheTruth) {
  Quadratic model({}, PlainSgd(0.01, 0.9), 3);
  double ratio = 0;
  constexpr int kWindows = 40;
  for (int window = 0; window < kWindows; ++window) {
    const TrainingReport report = model.Run({256, 512, 128, 128}, 20);
    ratio += std::log(report.noise_scale / model.TrueNoiseScale()) / kWindows;
  }
  EXPECT_NEAR(ratio, 0, 0.15);
}

TEST(QuadraticTest, OneWorkerMeasuresNoNoiseScale) {
  Quadratic model({}, PlainSgd(0.05, 0.9), 1);
  EXPECT_TRUE(IsMissing(model.Run({64, 0}, 20).noise_scale));
  EXPECT_FALSE(IsMissing(model.Run({64, 32}, 20).noise_scale));
}

TEST(QuadraticTest, ALearningRatePastTheEdgeDivergesButStaysFinite) {
  Quadratic model({}, PlainSgd(5.0, 0.9), 1);
  for (int window = 0; window < 50; ++window) {
    const TrainingReport report = model.Run({32, 32}, 20);
    EXPECT_TRUE(std::isfinite(report.loss));
  }
  EXPECT_GT(model.HeldOutLoss(), 100);
  EXPECT_TRUE(std::isfinite(model.HeldOutLoss()));
  EXPECT_NEAR(model.HeldOutAccuracy(), 0.1, 1e-9);
}

TEST(QuadraticTest, AdamStepsAreSignLikeWithoutNoise) {
  // One direction, no noise: every step moves by about the learning rate.
  QuadraticOptions options = OneDirection();
  options.noise_scale = 1e-9;
  OptimizerOptions optimizer = PlainSgd(0.001, 0);
  optimizer.kind = OptimizerKind::kAdam;
  Quadratic model(options, optimizer, 1);
  model.Run({64, 64}, 20);
  EXPECT_NEAR(std::sqrt(model.ExcessLoss()), 1 - 20 * 0.001, 5e-4);
}

TEST(QuadraticTest, AdamReachesALowerLossWithMoreSamplesPerStep) {
  OptimizerOptions optimizer = PlainSgd(0.01, 0.9);
  optimizer.kind = OptimizerKind::kAdam;
  Quadratic small({}, optimizer, 1), large({}, optimizer, 1);
  for (int window = 0; window < 300; ++window) {
    small.Run({4, 4}, 20);
    large.Run({64, 64}, 20);
  }
  EXPECT_LT(large.ExcessLoss(), small.ExcessLoss());
  EXPECT_LT(large.ExcessLoss(), 0.2);
}

TEST(QuadraticTest, TheRuleAndTheScheduleSetTheLearningRate) {
  OptimizerOptions optimizer = PlainSgd(0.1, 0);
  optimizer.base_batch = 64;
  optimizer.rule = LearningRateRule::kLinear;
  optimizer.schedule = Schedule::kStep;
  optimizer.planned_samples = 256 * 40;
  QuadraticOptions options;
  options.curvature = 0.1;
  Quadratic model(options, optimizer, 1);
  EXPECT_NEAR(model.Run({128, 128}, 20).learning_rate, 0.4, 1e-12);
  const TrainingReport second = model.Run({128, 128}, 20);
  EXPECT_NEAR(second.learning_rate, 0.004, 1e-12);
  EXPECT_NEAR(second.progress, 1, 1e-12);
}

// Rule none: at four times the base batch a step counts as much as at the base batch.
TEST(QuadraticTest, ByStepsALargeBatchDoesNotUseUpTheSchedule) {
  OptimizerOptions optimizer = PlainSgd(0.1, 0);
  optimizer.base_batch = 64;
  optimizer.schedule = Schedule::kStep;
  optimizer.planned_samples = 64 * 40;
  QuadraticOptions options;
  options.curvature = 0.1;
  Quadratic by_samples(options, optimizer, 1);
  optimizer.clock = ScheduleClock::kSteps;
  Quadratic by_steps(options, optimizer, 1);
  EXPECT_NEAR(by_samples.Run({128, 128}, 10).progress, 1, 1e-12);
  EXPECT_NEAR(by_steps.Run({128, 128}, 10).progress, 0.25, 1e-12);
  EXPECT_NEAR(by_steps.Run({128, 128}, 8).learning_rate, 0.1, 1e-12);
  EXPECT_NEAR(by_steps.Run({128, 128}, 8).learning_rate, 0.01, 1e-12) << "past the half";
  by_steps.Run({128, 128}, 34);
  EXPECT_NEAR(by_steps.Progress(), 1.5, 1e-12) << "and on after its end";
}

TEST(QuadraticTest, ACloneContinuesIdentically) {
  Quadratic model({}, PlainSgd(0.05, 0.9), 5);
  model.Run({64, 32}, 20);
  const auto copy = model.Clone();
  for (int window = 0; window < 5; ++window) {
    const TrainingReport a = model.Run({64, 16}, 20), b = copy->Run({64, 16}, 20);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.noise_scale, b.noise_scale);
    EXPECT_EQ(model.HeldOutLoss(), copy->HeldOutLoss());
  }
}

TEST(QuadraticTest, AccuracyGoesFromChanceToBest) {
  QuadraticOptions options;
  options.noise_scale = 1e-6;
  Quadratic model(options, PlainSgd(0.05, 0.9), 1);
  EXPECT_NEAR(model.HeldOutAccuracy(), options.chance_accuracy, 1e-9);
  for (int window = 0; window < 3000; ++window) model.Run({512}, 20);
  EXPECT_NEAR(model.HeldOutAccuracy(), options.best_accuracy, 1e-3);
}

}  // namespace
}  // namespace dynamix
