#include "dynamix/arbitrator/vector_environment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr int kWorkers = 3;

// With a batch that grows, every other task reaches its target in time.
LearningTask EveryOtherTask(std::int64_t number, std::uint64_t) {
  LearningTask task;
  const double critical = number % 2 == 0 ? 2400 : 96;
  task.environment = std::make_unique<FakeJob>(kWorkers, critical, 400);
  task.tau = [](double loss) { return 100 * (1 - std::max(loss, 0.5)); };
  task.reference_seconds = 50;
  return task;
}

VectorOptions Small() {
  VectorOptions options;
  options.environments = 4;
  options.workers = kWorkers;
  options.tasks = 6;
  options.actions = {.kind = ActionKind::kRelative};
  return options;
}

std::vector<int> Repeat(int count, int action) { return std::vector<int>(count, action); }

TEST(VectorEnvironmentTest, ActionsMoveBatchesAndJobsThatEndAreReplaced) {
  VectorEnvironment all(Small(), EveryOtherTask);
  const double before = all.round(0).GlobalBatch();
  int ended = 0, reached = 0;
  for (int step = 0; step < 200; ++step) {
    const StepResult& result = all.Step(Repeat(4, 4), Repeat(4 * kWorkers, kHold));
    if (step == 0) {
      EXPECT_NEAR(all.round(0).GlobalBatch(), 1.5 * before, kWorkers);
    }
    for (int e = 0; e < 4; ++e) {
      ASSERT_TRUE(std::isfinite(result.rewards[e]));
      ASSERT_GT(result.seconds[e], 0);
      if (!result.terminated[e] && !result.truncated[e]) continue;
      ++ended;
      reached += result.terminated[e];
      EXPECT_EQ(all.round(e).index, 0) << "the first round of a new job";
      EXPECT_EQ(all.round(e).GlobalBatch(), before);
    }
  }
  EXPECT_GT(reached, 0);
  EXPECT_GT(ended, reached) << "some jobs run out of time";
}

TEST(VectorEnvironmentTest, FinalRowsAreOfTheStateAJobEndedIn) {
  VectorEnvironment all(Small(), EveryOtherTask);
  for (int step = 0; step < 200; ++step) {
    const StepResult& result = all.Step(Repeat(4, 4), Repeat(4 * kWorkers, kHold));
    const std::span<const float> rows = all.rows().Team().actor_rows;
    const std::size_t width = rows.size() / 4;
    for (int e = 0; e < 4; ++e) {
      bool same = true;
      for (std::size_t c = e * width; c < (e + 1) * width; ++c)
        same = same && (rows[c] == result.final_team[c] ||
                        (std::isnan(rows[c]) && std::isnan(result.final_team[c])));
      ASSERT_EQ(same, !result.terminated[e] && !result.truncated[e]) << "step " << step;
    }
  }
}

TEST(VectorEnvironmentTest, TheSameSeedGivesTheSameRewardsOnAnyNumberOfThreads) {
  VectorOptions options = Small();
  VectorEnvironment one(options, EveryOtherTask);
  options.threads = 1;
  VectorEnvironment other(options, EveryOtherTask);
  other.Reset(7);
  one.Reset(7);
  for (int step = 0; step < 40; ++step)
    ASSERT_EQ(one.Step(Repeat(4, step % 5), Repeat(4 * kWorkers, kHold)).rewards,
              other.Step(Repeat(4, step % 5), Repeat(4 * kWorkers, kHold)).rewards);
}

TEST(VectorEnvironmentTest, RefusesActionsThatAreNone) {
  VectorEnvironment all(Small(), EveryOtherTask);
  EXPECT_THROW(all.Step(Repeat(4, 5), Repeat(4 * kWorkers, kHold)), InputError);
  EXPECT_THROW(all.Step(Repeat(3, 2), Repeat(4 * kWorkers, kHold)), InputError);
  EXPECT_THROW(all.Step(Repeat(4, 2), Repeat(4, kHold)), InputError);
}

}  // namespace
}  // namespace dynamix
