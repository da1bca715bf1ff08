#include "dynamix/simulator/clairvoyant.h"

#include <gtest/gtest.h>

#include "dynamix/simulator/distribution.h"

namespace dynamix {
namespace {

Task MakeJob(LearningRateRule rule, double noise_scale, double overhead_ms) {
  Workload workload;
  workload.optimizer.rule = rule;
  workload.optimizer.planned_samples = 128 * 20 * 100;
  workload.target.run_share = 0.7;
  QuadraticOptions quadratic;
  quadratic.noise_scale = noise_scale;
  workload.convergence = quadratic;
  Scenario scenario;
  scenario.nodes[0].node.overhead_ms = overhead_ms;
  return MakeTask({.scenario = scenario, .workload = workload, .workers = 4}, {});
}

TEST(BestConstantBatchTest, IsNeverSlowerThanTheReference) {
  Rng rng(2);
  DistributionOptions options;
  options.miniature_share = 0;
  for (int i = 0; i < 20; ++i) {
    const Task task = RandomTask(rng, options);
    const Bound bound = BestConstantBatch(task);
    EXPECT_TRUE(bound.reached);
    EXPECT_LE(bound.time_to_target_s, 1.02 * task.reference_seconds);
  }
}

TEST(BestConstantBatchTest, GrowsWithTheFixedCostOfAnIteration) {
  const Bound cheap = BestConstantBatch(MakeJob(LearningRateRule::kLinear, 200, 0.5));
  const Bound costly = BestConstantBatch(MakeJob(LearningRateRule::kLinear, 200, 200));
  EXPECT_GT(costly.global_batches.front(), 1.4 * cheap.global_batches.front());
}

TEST(ClairvoyantTest, IsNeverSlowerThanTheBestConstantBatch) {
  Rng rng(4);
  DistributionOptions options;
  options.miniature_share = 0;
  double better = 0;
  for (int i = 0; i < 8; ++i) {
    const Task task = RandomTask(rng, options);
    const Bound constant = BestConstantBatch(task), best = Clairvoyant(task);
    EXPECT_TRUE(best.reached);
    EXPECT_LE(best.time_to_target_s, constant.time_to_target_s);
    EXPECT_GE(best.final_accuracy, 0);
    better += best.time_to_target_s < 0.99 * constant.time_to_target_s;
  }
  EXPECT_GT(better, 2);
}

TEST(ClairvoyantTest, ItsScheduleReallyTakesThatLong) {
  const Task task = MakeJob(LearningRateRule::kNone, 60, 20);
  const Bound bound = Clairvoyant(task);
  const auto run = task.MakeEnvironment();
  run->Reset();
  for (const double batch : bound.global_batches) run->Advance(run->BalancedSizes(batch));
  EXPECT_TRUE(run->truth().reached);
  EXPECT_DOUBLE_EQ(run->truth().seconds, bound.time_to_target_s);
}

}  // namespace
}  // namespace dynamix
