#include "dynamix/simulator/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

Workload Job(const TargetOptions& target) {
  Workload workload;
  workload.name = "job";
  workload.optimizer.planned_samples = 128 * 20 * 100;
  workload.target = target;
  return workload;
}

// The reference policy on the task's own environment.
double TimeUnderReference(const Task& task) {
  const auto cluster = task.MakeEnvironment();
  cluster->Reset();
  while (!cluster->truth().reached && !cluster->truth().out_of_time)
    cluster->Advance(cluster->BalancedSizes(task.job.workload.optimizer.base_batch));
  EXPECT_TRUE(cluster->truth().reached);
  return cluster->truth().seconds;
}

TEST(TaskTest, TheReferenceReachesEveryKindOfTargetInItsTime) {
  for (const TargetOptions& target : {TargetOptions{.run_share = 0.6}, TargetOptions{.loss = 1.0},
                                      TargetOptions{.accuracy = 0.5}}) {
    const Task task = MakeTask({.workload = Job(target), .workers = 4, .seed = 3}, {});
    EXPECT_NEAR(TimeUnderReference(task), task.reference_seconds, 1e-9 * task.reference_seconds);
    EXPECT_GE(task.limits.seconds, 3 * task.reference_seconds);
  }
}

TEST(TaskTest, ABudgetIsTheScenariosButAtLeastThreeReferenceTimes) {
  Scenario scenario;
  scenario.time_budget = 0.01;
  const Task small =
      MakeTask({.scenario = scenario, .workload = Job({.run_share = 0.6}), .workers = 4}, {});
  EXPECT_DOUBLE_EQ(small.limits.seconds, 3 * small.reference_seconds);
  scenario.time_budget = 20;
  const Task large =
      MakeTask({.scenario = scenario, .workload = Job({.run_share = 0.6}), .workers = 4}, {});
  EXPECT_DOUBLE_EQ(large.limits.seconds, large.MakeEnvironment()->time_budget_seconds());
  EXPECT_GT(large.limits.seconds, 3 * large.reference_seconds);
}

TEST(TaskTest, AnOffsetChangesNoiseButNotTheTask) {
  Scenario scenario;
  scenario.events = {{.target = EventTarget::kRandom, .duration = 0.1, .every = 0.2}};
  const Task task = MakeTask(
      {.scenario = scenario, .workload = Job({.run_share = 0.6}), .workers = 8, .seed = 3}, {});
  const auto a = task.MakeEnvironment(), b = task.MakeEnvironment(), c = task.MakeEnvironment(1);
  EXPECT_EQ(a->Reset().seconds, b->Reset().seconds);
  EXPECT_NE(a->truth().seconds, (c->Reset(), c->truth().seconds));
  EXPECT_EQ(a->initial_loss(), c->initial_loss());
}

TEST(TaskTest, RefusesATargetTheReferenceDoesNotReach) {
  EXPECT_THAT(
      [] { MakeTask({.workload = Job({.accuracy = 0.949}), .workers = 4}, {}); },
      testing::ThrowsMessage<InputError>(testing::HasSubstr("job: target.accuracy = 0.949")));
  EXPECT_THAT([] { MakeTask({.workload = Job({.loss = 0.01}), .workers = 4}, {}); },
              testing::ThrowsMessage<InputError>(testing::HasSubstr("job: target.loss = 0.01")));
}

}  // namespace
}  // namespace dynamix
