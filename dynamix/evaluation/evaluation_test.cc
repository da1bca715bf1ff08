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
  EXPECT_EQ(result.samples, 391 * 20 * 64);
  ASSERT_EQ(result.curve.size(), 392u);  // one per window, and the last moment
  EXPECT_NEAR(result.curve[9].seconds, 10 * 20 * 0.072, 1e-9);
  EXPECT_EQ(result.curve[9].samples, 10 * 20 * 64);
  EXPECT_NEAR(result.curve[9].accuracy, 10 * 20 * 64 / 1e6, 1e-9);
}

TEST(EvaluationTest, AMissedTargetCountsWithTheWholeBudget) {
  FakeJob job(2, 1e9, 100);
  Arbitrator arbitrator(Fixed(32));
  const JobResult result = RunJob(job, arbitrator, 0);
  EXPECT_FALSE(result.reached);
  EXPECT_EQ(result.time_to_target_s, 100);
}

TEST(EvaluationTest, AccuracyIsTakenAtTheCommonTime) {
  FakeJob job(2, 1e9, 1e9);
  Arbitrator arbitrator(Fixed(32));
  const double window = 20 * 0.072;
  const JobResult result = RunJob(job, arbitrator, 10.5 * window);
  EXPECT_NEAR(result.final_accuracy, 10 * 20 * 64 / 1e6, 1e-9);
}

std::vector<JobResult> BestStatic(std::vector<JobResult> results) {
  AddBestStatic(results);
  std::erase_if(results, [](const JobResult& r) { return r.policy != "best_static"; });
  return results;
}

TEST(EvaluationTest, TheBestStaticSizeIsChosenPerScenarioOverAllSeeds) {
  const std::vector<JobResult> best =
      BestStatic({Result("static", 1, 10), Result("static", 2, 10), Result("static:64", 1, 5),
                  Result("static:64", 2, 30), Result("static", 1, 9, "other"),
                  Result("static:64", 1, 3, "other"), Result("balanced", 1, 1)});
  ASSERT_EQ(best.size(), 3u);
  for (const JobResult& r : best) EXPECT_EQ(r.time_to_target_s, r.scenario == "s" ? 10 : 3);
}

TEST(EvaluationTest, TheBestStaticSizeReachedItsTargetEveryTime) {
  JobResult missed = Result("static:64", 2, 6);
  missed.reached = false;
  const std::vector<JobResult> best = BestStatic(
      {Result("static", 1, 10), Result("static", 2, 10), Result("static:64", 1, 1), missed});
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].time_to_target_s, 10);
  EXPECT_TRUE(BestStatic({Result("static:64", 1, 1), missed}).empty());
}

}  // namespace
}  // namespace dynamix
