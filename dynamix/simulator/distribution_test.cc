#include "dynamix/simulator/distribution.h"

#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"
#include "dynamix/simulator/testing/environment_conformance.h"

namespace dynamix {
namespace {

DistributionOptions Quadratics(DistributionKind kind = DistributionKind::kTraining) {
  DistributionOptions options;
  options.kind = kind;
  options.miniature_share = 0;
  return options;
}

TEST(DistributionTest, TheSameNumberGivesTheSameTask) {
  Rng a(5), b(5);
  const Task x = RandomTask(a, Quadratics()), y = RandomTask(b, Quadratics());
  EXPECT_EQ(FormatScenario(x.job.scenario), FormatScenario(y.job.scenario));
  EXPECT_EQ(FormatWorkload(x.job.workload), FormatWorkload(y.job.workload));
  EXPECT_EQ(x.reference_seconds, y.reference_seconds);
  EXPECT_EQ(a.state(), b.state());
}

TEST(DistributionTest, EveryTaskTakesOneNumber) {
  Rng used(5), counted(5);
  RandomTask(used, Quadratics());
  counted.Next();
  EXPECT_EQ(used.state(), counted.state());
}

TEST(DistributionTest, TheThreeKindsNeverShareATask) {
  Rng a(5), b(5), c(5);
  const auto seed_of = [](Rng& rng, DistributionKind kind) {
    return RandomTask(rng, Quadratics(kind)).job.seed;
  };
  const auto training = seed_of(a, DistributionKind::kTraining);
  const auto validation = seed_of(b, DistributionKind::kValidation);
  const auto held_out = seed_of(c, DistributionKind::kHeldOut);
  EXPECT_NE(training, validation);
  EXPECT_NE(training, held_out);
  EXPECT_NE(validation, held_out);
}

TEST(DistributionTest, TasksAreReachableVariedAndInsideTheirRanges) {
  Rng rng(7);
  int quiet = 0, equal = 0, rules[kLearningRateRuleCount] = {}, good_starts = 0;
  constexpr int kTasks = 150;
  for (int i = 0; i < kTasks; ++i) {
    const Task task = RandomTask(rng, Quadratics());
    EXPECT_GE(task.job.workers, 2);
    EXPECT_LE(task.job.workers, 32);
    EXPECT_LE(task.reference_seconds, task.reference.seconds());
    EXPECT_GE(task.reference_seconds, 0.1 * task.reference.seconds());
    EXPECT_NEAR(task.limits.seconds, 3 * task.reference_seconds, 1e-9 * task.limits.seconds);
    quiet += task.job.scenario.events.empty();
    ++rules[static_cast<int>(task.job.workload.optimizer.rule)];
    double fastest = 0, slowest = 1e9;
    for (const NodeGroup& group : task.job.scenario.nodes) {
      fastest = std::max(fastest, group.node.speed);
      slowest = std::min(slowest, group.node.speed);
    }
    EXPECT_LE(fastest / slowest, 6.001);
    equal += fastest == slowest;
    const double start = static_cast<double>(task.job.scenario.start_batch) * task.job.workers;
    good_starts += std::abs(std::log2(start / task.job.workload.optimizer.base_batch)) < 0.3;
  }
  EXPECT_GT(quiet, kTasks / 5);
  EXPECT_GT(equal, kTasks / 4);
  EXPECT_GT(good_starts, kTasks / 4);
  EXPECT_LT(good_starts, kTasks * 3 / 4);
  for (const int count : rules) EXPECT_GT(count, kTasks / 10);
}

TEST(DistributionTest, RandomEnvironmentsConform) {
  Rng rng(11);
  for (int i = 0; i < 20; ++i) {
    const Task task = RandomTask(rng, Quadratics(static_cast<DistributionKind>(i % 3)));
    CheckEnvironment([&] { return task.MakeEnvironment(); });
  }
}

TEST(DistributionTest, DrawsMiniaturesOfTheAskedFamilies) {
  DistributionOptions options;
  options.miniature_share = 1;
  options.families = {MiniatureFamily::kTeacher};
  options.min_iterations = 200;
  options.max_iterations = 400;
  options.pools.gaussian = MakeGaussianPool(1);
  Rng rng(3);
  const Task task = RandomTask(rng, options);
  ASSERT_FALSE(task.job.workload.is_quadratic());
  EXPECT_EQ(std::get<MiniatureOptions>(task.job.workload.convergence).family,
            MiniatureFamily::kTeacher);
}

TEST(DistributionTest, RefusesWhatCannotBe) {
  Rng rng(1);
  DistributionOptions options = Quadratics();
  options.min_workers = 40;
  EXPECT_THROW(RandomTask(rng, options), InputError);
}

}  // namespace
}  // namespace dynamix
