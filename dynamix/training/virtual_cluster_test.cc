#include "dynamix/training/virtual_cluster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/simulator/testing/environment_conformance.h"
#include "dynamix/training/real_convergence.h"
#include "dynamix/training/testing/sample_dataset.h"

namespace dynamix {
namespace {

Workload SmallWorkload() {
  Workload workload;
  workload.model = {.name = "mlp", .width = 0.05};
  workload.optimizer = {.learning_rate = 0.1, .base_batch = 32, .planned_samples = 20000};
  workload.target = {.accuracy = 0.9};
  return workload;
}

Scenario SmallScenario() {
  Scenario scenario;
  scenario.bounds = {.min = 1, .max = 64};
  scenario.nodes = {{1, {.speed = 2}}, {2, {.speed = 1}}};
  scenario.events = {{.kind = EventKind::kLeave, .at = 0.05, .duration = 0.05}};
  return scenario;
}

JobSpec SmallJob(int workers, std::uint64_t seed) {
  return {
      .scenario = SmallScenario(), .workload = SmallWorkload(), .workers = workers, .seed = seed};
}

TEST(VirtualClusterTest, PassesTheConformanceKit) {
  SetThreads(1);
  CheckEnvironment([] { return MakeVirtualCluster(SmallJob(3, 7), SampleDataset()); });
}

TEST(VirtualClusterTest, LearnsAndReachesItsTarget) {
  SetThreads(1);
  const auto cluster = MakeVirtualCluster(SmallJob(4, 1), SampleDataset());
  Round round = cluster->Reset();
  while (!cluster->truth().reached && !cluster->truth().out_of_time)
    round = cluster->Step(Batches(round));
  EXPECT_TRUE(cluster->truth().reached);
  EXPECT_LT(cluster->truth().held_out_loss, 0.5 * std::log(4.0));
}

TEST(VirtualClusterTest, RefusesAnotherDataSet) {
  JobSpec job = SmallJob(2, 1);
  job.workload.model.dataset = "cifar10";
  EXPECT_THROW(MakeVirtualCluster(job, SampleDataset()), InputError);
}

RealConvergenceOptions SmallOptions(OptimizerKind kind) {
  RealConvergenceOptions options;
  options.model = {.name = "mlp", .width = 0.05};
  options.optimizer = {.kind = kind, .learning_rate = 0.01, .base_batch = 32};
  options.held_out_samples = 100;
  options.noise_every = 1;
  return options;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  return largest;
}

TEST(RealConvergenceTest, UnequalWorkersTrainLikeOneWorkerWithTheUnion) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    RealConvergence many(SmallOptions(kind), SampleDataset()),
        one(SmallOptions(kind), SampleDataset());
    many.Run({3, 17, 0, 9, 1, 2}, 20);
    one.Run({32}, 20);
    EXPECT_LT(LargestDifference(many.parameters().CopyValues(), one.parameters().CopyValues()),
              2e-6);
  }
}

TEST(RealConvergenceTest, ACloneContinuesIdentically) {
  RealConvergenceOptions options = SmallOptions(OptimizerKind::kAdam);
  options.model = {.name = "vgg11", .width = 0.03};  // with batch norm
  RealConvergence engine(options, SampleDataset(100, 100, {1, 16, 16}));
  engine.Run({4, 4}, 2);
  const auto copy = engine.Clone();
  const TrainingReport a = engine.Run({2, 5}, 2), b = copy->Run({2, 5}, 2);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.noise_scale, b.noise_scale);
  EXPECT_EQ(engine.HeldOutLoss(), copy->HeldOutLoss());
  EXPECT_EQ(engine.Progress(), copy->Progress());
}

// Rule sqrt at four times the base batch: a step has twice the rate, and counts as 16 samples.
TEST(RealConvergenceTest, ByStepsALargeBatchDoesNotUseUpTheSchedule) {
  RealConvergenceOptions options = SmallOptions(OptimizerKind::kSgd);
  options.optimizer.base_batch = 8;
  options.optimizer.rule = LearningRateRule::kSqrt;
  options.optimizer.schedule = Schedule::kStep;
  options.optimizer.clock = ScheduleClock::kSteps;
  options.optimizer.planned_samples = 320;
  RealConvergence engine(options, SampleDataset());
  EXPECT_DOUBLE_EQ(engine.Run({20, 12}, 9).progress, 0.45);
  EXPECT_EQ(engine.sampler().cursor(), 9 * 32);
  engine.Run({20, 12}, 1);
  EXPECT_DOUBLE_EQ(engine.Run({20, 12}, 1).learning_rate, 0.1 * 2 * 0.01);
}

TEST(RealConvergenceTest, DivergenceIsReportedAsMissingAndWorst) {
  RealConvergenceOptions options = SmallOptions(OptimizerKind::kSgd);
  options.optimizer.learning_rate = 1e6;
  RealConvergence engine(options, SampleDataset());
  for (int i = 0; i < 20 && !engine.diverged(); ++i) engine.Run({8, 8}, 20);
  EXPECT_TRUE(engine.diverged());
  EXPECT_TRUE(IsMissing(engine.Run({8, 8}, 2).loss));
  EXPECT_EQ(engine.HeldOutLoss(), RealConvergence::kWorstLoss);
}

}  // namespace
}  // namespace dynamix
