#include "dynamix/simulator/miniatures/miniature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace dynamix {
namespace {

const MiniaturePools& Pools() {
  static const MiniaturePools pools{nullptr, MakeGaussianPool(21, 6000, 600)};
  return pools;
}

MiniatureOptions Options() {
  MiniatureOptions options;
  options.family = MiniatureFamily::kTeacher;
  options.network = {24, 16, 0, 6, Activation::kRelu};
  options.training_samples = 5000;
  options.spectrum = 0.7;
  options.optimizer.learning_rate = 0.03;
  options.optimizer.momentum = 0.9;
  return options;
}

double LargestDifference(const AlignedFloats& a, const AlignedFloats& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max<double>(largest, std::abs(a[i] - b[i]));
  return largest;
}

bool SameBytes(const TrainingReport& a, const TrainingReport& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(MiniatureTest, UnequalWorkersEqualOneWorkerWithTheUnion) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    MiniatureOptions options = Options();
    options.optimizer.kind = kind;
    if (kind == OptimizerKind::kAdam) options.optimizer.learning_rate = 0.003;
    Miniature many(options, Pools()), one(options, Pools());
    const std::vector<std::vector<int>> kSplits = {{5, 17, 2, 40},
                                                   {64, 0, 0, 64},
                                                   {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 300},
                                                   std::vector<int>(100, 3)};
    for (const auto& batches : kSplits) {
      int sum = 0;
      for (const int batch : batches) sum += batch;
      const TrainingReport split = many.Run(batches, 10), whole = one.Run({sum}, 10);
      EXPECT_NEAR(split.loss, whole.loss, 1e-4);
      EXPECT_NEAR(split.gradient_norm, whole.gradient_norm, 1e-4);
      EXPECT_FALSE(IsMissing(split.noise_scale));
      EXPECT_TRUE(IsMissing(whole.noise_scale));
    }
    EXPECT_LT(LargestDifference(many.parameters(), one.parameters()),
              kind == OptimizerKind::kSgd ? 2e-5 : 2e-3);
    EXPECT_EQ(many.samples_seen(), one.samples_seen());
  }
}

// The noise scale of the network as it is, from the gradient of every single sample.
double BruteForceNoiseScale(Miniature& miniature) {
  MiniatureNetwork network = miniature.network();
  network.SetParameters(miniature.parameters());
  const MiniatureTask& task = miniature.task();
  const int size = network.parameter_count(), count = static_cast<int>(task.training.rows.size());
  AlignedFloats inputs(network.input_stride()), one(size), sum(size, 0.0f);
  double squares = 0;
  for (int s = 0; s < count; ++s) {
    GatherScaled(1, network.input_stride(), &task.training.rows[s], task.pool->rows.data(),
                 task.pool->stride, task.scales.data(), inputs.data());
    std::fill(one.begin(), one.end(), 0.0f);
    network.AddGradient(1, inputs.data(), &task.training.labels[s], one.data());
    squares += SquaredNormAndAdd(size, one.data(), sum.data()) / count;
  }
  const double mean = SquaredNorm(size, sum.data()) / (static_cast<double>(count) * count);
  return (squares - mean) / mean;
}

TEST(MiniatureTest, NoiseScaleEqualsBruteForceOnAFixedNetwork) {
  for (const auto& batches :
       {std::vector<int>(8, 64), {10, 100, 3, 200, 199}, std::vector<int>(64, 8)}) {
    MiniatureOptions options = Options();
    Miniature trained(options, Pools());
    trained.Run({64, 64}, 20);
    // The initial network, frozen by a rate that moves no weight.
    options.optimizer.learning_rate = 1e-9;
    Miniature frozen(options, Pools());
    double sum = 0;
    constexpr int kWindows = 60;
    for (int w = 0; w < kWindows; ++w) sum += frozen.Run(batches, 20).noise_scale;
    const double truth = BruteForceNoiseScale(frozen);
    EXPECT_NEAR(sum / kWindows / truth, 1, 0.1) << truth;
    EXPECT_GT(BruteForceNoiseScale(trained), 2 * truth) << "training raises the noise scale";
  }
}

TEST(MiniatureTest, NoiseScaleKeptApartInEveryFifthIterationAgrees) {
  MiniatureOptions options = Options();
  options.optimizer.learning_rate = 1e-9;
  Miniature always(options, Pools());
  options.noise_every = 5;
  Miniature seldom(options, Pools());
  double sums[2] = {0, 0};
  for (int w = 0; w < 60; ++w) {
    sums[0] += always.Run(std::vector<int>(8, 32), 20).noise_scale;
    sums[1] += seldom.Run(std::vector<int>(8, 32), 20).noise_scale;
  }
  EXPECT_NEAR(sums[1] / sums[0], 1, 0.1);
}

TEST(MiniatureTest, CloneContinuesIdentically) {
  MiniatureOptions options = Options();
  options.optimizer.rule = LearningRateRule::kAdaScale;
  options.optimizer.schedule = Schedule::kCosine;
  Miniature original(options, Pools());
  original.Run({30, 60}, 37);
  const auto clone = original.Clone();
  for (const auto& batches : {std::vector<int>{100, 3}, {7, 0, 9}, {500}}) {
    EXPECT_TRUE(SameBytes(original.Run(batches, 40), clone->Run(batches, 40)));
    EXPECT_EQ(original.HeldOutLoss(), clone->HeldOutLoss());
    EXPECT_EQ(original.HeldOutAccuracy(), clone->HeldOutAccuracy());
  }
  EXPECT_EQ(original.parameters(), static_cast<Miniature&>(*clone).parameters());
}

TEST(MiniatureTest, SameSeedSameBytesOtherSeedOtherRunOfTheSameTask) {
  MiniatureOptions options = Options();
  Miniature a(options, Pools()), b(options, Pools());
  options.seed = 2;
  Miniature c(options, Pools());
  const std::vector<int> batches = {13, 40, 75};
  EXPECT_TRUE(SameBytes(a.Run(batches, 50), b.Run(batches, 50)));
  EXPECT_EQ(a.parameters(), b.parameters());
  c.Run(batches, 50);
  EXPECT_NE(a.parameters(), c.parameters());
  EXPECT_EQ(a.task().training.labels, c.task().training.labels);
  options.task_seed = 2;
  EXPECT_NE(Miniature(options, Pools()).task().training.labels, a.task().training.labels);
}

TEST(MiniatureTest, HeldOutLossFallsAndIsCachedUntilTheNextRun) {
  Miniature miniature(Options(), Pools());
  const double start = miniature.HeldOutLoss();
  EXPECT_EQ(start, miniature.HeldOutLoss());
  miniature.Run({32, 32}, 500);
  EXPECT_LT(miniature.HeldOutLoss(), 0.75 * start);
  EXPECT_GT(miniature.HeldOutAccuracy(), 0.5);
}

TEST(MiniatureTest, LearningRateFollowsRuleAndSchedule) {
  MiniatureOptions options = Options();
  options.optimizer.rule = LearningRateRule::kLinear;
  options.optimizer.schedule = Schedule::kStep;
  options.optimizer.base_batch = 50;
  options.optimizer.planned_samples = 10000;
  Miniature miniature(options, Pools());
  EXPECT_DOUBLE_EQ(miniature.Run({40, 60}, 1).learning_rate, 2 * 0.03);
  const TrainingReport half = miniature.Run({20, 30}, 99);  // ends at 5,050 samples
  EXPECT_DOUBLE_EQ(half.learning_rate, 0.1 * 0.03);
  EXPECT_DOUBLE_EQ(half.progress, 0.505);
  EXPECT_DOUBLE_EQ(miniature.Run({400, 600}, 20).progress, 1);
  EXPECT_DOUBLE_EQ(miniature.Progress(), 2.505);
}

TEST(MiniatureTest, ByStepsALargeBatchDoesNotUseUpTheSchedule) {
  MiniatureOptions options = Options();
  options.optimizer.rule = LearningRateRule::kSqrt;
  options.optimizer.schedule = Schedule::kStep;
  options.optimizer.clock = ScheduleClock::kSteps;
  options.optimizer.base_batch = 25;
  options.optimizer.planned_samples = 1000;
  Miniature miniature(options, Pools());
  // Four times the batch is twice the rate: 50 samples of the schedule a step.
  EXPECT_DOUBLE_EQ(miniature.Run({40, 60}, 9).progress, 0.45);
  EXPECT_EQ(miniature.samples_seen(), 900);
  miniature.Run({40, 60}, 1);
  EXPECT_DOUBLE_EQ(miniature.Run({40, 60}, 1).learning_rate, 0.1 * 2 * 0.03);
}

double HeldOutLossAfter(const MiniatureOptions& options, int batch, int samples) {
  Miniature miniature(options, Pools());
  miniature.Run({batch / 2, batch / 2}, samples / batch);
  return miniature.HeldOutLoss();
}

TEST(MiniatureTest, LargeBatchesWithoutALearningRateRuleLearnLessPerSampleEarly) {
  MiniatureOptions options = Options();
  options.optimizer.learning_rate = 0.01;
  EXPECT_LT(HeldOutLossAfter(options, 16, 20000), HeldOutLossAfter(options, 128, 20000) - 0.05);
  EXPECT_LT(HeldOutLossAfter(options, 128, 20000), HeldOutLossAfter(options, 1024, 20000) - 0.05);
}

TEST(MiniatureTest, SmallBatchesHitTheirNoiseFloorLate) {
  MiniatureOptions options = Options();
  options.optimizer.learning_rate = 0.1;
  EXPECT_GT(HeldOutLossAfter(options, 8, 150000), HeldOutLossAfter(options, 256, 150000) + 0.05);
}

TEST(MiniatureTest, DivergenceIsReportedAsMissingAndNeverThrows) {
  MiniatureOptions options = Options();
  options.optimizer.learning_rate = 1e3;
  options.feature_scale = 20;
  Miniature miniature(options, Pools());
  TrainingReport report;
  for (int w = 0; w < 20 && !miniature.diverged(); ++w) report = miniature.Run({64, 64}, 20);
  ASSERT_TRUE(miniature.diverged());
  report = miniature.Run({64, 64}, 20);
  EXPECT_TRUE(IsMissing(report.loss));
  EXPECT_TRUE(IsMissing(report.noise_scale));
  EXPECT_GT(report.progress, 0);
  EXPECT_EQ(miniature.HeldOutLoss(), Miniature::kWorstLoss);
  EXPECT_DOUBLE_EQ(miniature.HeldOutAccuracy(), 1.0 / 6);
}

}  // namespace
}  // namespace dynamix
