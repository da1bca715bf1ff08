#include "dynamix/evaluation/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/arbitrator/testing/fixed_policy.h"

namespace dynamix {
namespace {

JobResult Result(const std::string& policy, int seed, double time,
                 const std::string& scenario = "s") {
  JobResult result;
  result.scenario = scenario;
  result.workload = "w";
  result.policy = policy;
  result.workers = 4;
  result.seed = seed;
  result.time_to_target_s = time;
  result.reached = true;
  return result;
}

TEST(EvaluationTest, ReportsTheTimeTheTargetWasReachedAt) {
  // 2 workers of batch 32: 64 samples per iteration, 20 * 64 / 1e6 of loss per window, 0.5 to go:
  // 391 windows of 20 * (32 + 40) ms.
  FakeJob job(2, 1e9, 1e9);
  Arbitrator arbitrator(Fixed(32));
  const JobResult result = RunJob(job, arbitrator, 0);
  EXPECT_TRUE(result.reached);
  EXPECT_EQ(result.windows, 391);
  EXPECT_NEAR(result.time_to_target_s, 391 * 20 * 0.072, 1e-6);
  EXPECT_NEAR(result.mean_wait_share, 16.0 / 72 / 2, 1e-9);
}

TEST(EvaluationTest, AMissedTargetCountsWithTheWholeBudget) {
  FakeJob job(2, 1e9, 100);
  Arbitrator arbitrator(Fixed(32));
  const JobResult result = RunJob(job, arbitrator, 0);
  EXPECT_FALSE(result.reached);
  EXPECT_GE(result.time_to_target_s, 100);
}

TEST(EvaluationTest, AccuracyIsTakenAtTheCommonTime) {
  FakeJob job(2, 1e9, 1e9);
  Arbitrator arbitrator(Fixed(32));
  const double window = 20 * 0.072;
  const JobResult result = RunJob(job, arbitrator, 10.5 * window);
  EXPECT_NEAR(result.final_accuracy, 10 * 20 * 64 / 1e6, 1e-9);
}

TEST(EvaluationTest, ComparesOnlyJobsBothRanAndGeometrically) {
  const std::vector<JobResult> results = {Result("a", 1, 2), Result("a", 2, 8), Result("b", 1, 1),
                                          Result("b", 2, 1), Result("a", 3, 100)};
  const Interval ratio = CompareTimes(results, "a", "b");
  EXPECT_EQ(ratio.jobs, 2);
  EXPECT_NEAR(ratio.mean, 4, 1e-12);
  EXPECT_LT(ratio.low, 4);
  // log ratios log 2 and log 8: deviation log 2, so the half-width is 12.706 * log 2.
  EXPECT_NEAR(std::log(ratio.high), std::log(4) + 12.706 * std::log(2.0), 1e-9);
  EXPECT_EQ(CompareTimes(results, "a", "nobody").jobs, 0);
}

TEST(EvaluationTest, TheBestStaticSizeIsChosenPerScenarioOverAllSeeds) {
  std::vector<JobResult> results = {
      Result("static", 1, 10),         Result("static", 2, 10),
      Result("static:64", 1, 5),       Result("static:64", 2, 30),
      Result("static", 1, 9, "other"), Result("static:64", 1, 3, "other"),
      Result("balanced", 1, 1)};
  AddBestStatic(results);
  EXPECT_EQ(CompareTimes(results, "best_static", "static").jobs, 3);
  for (const JobResult& r : results) {
    if (r.policy != "best_static") continue;
    EXPECT_EQ(r.time_to_target_s, r.scenario == "s" ? 10 : 3);
  }
}

}  // namespace
}  // namespace dynamix
