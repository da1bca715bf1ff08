#include "dynamix/evaluation/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

JobResult Result(const std::string& policy, const std::string& workload, int seed, double time,
                 bool reached = true) {
  JobResult result;
  result.scenario = "s";
  result.workload = workload;
  result.policy = policy;
  result.workers = 4;
  result.seed = seed;
  result.time_to_target_s = time;
  result.reached = reached;
  return result;
}

// Ratios of policy a over policy b, which always takes 1 s.
std::vector<JobResult> Ratios(const std::vector<std::pair<std::string, double>>& ratios) {
  std::vector<JobResult> results;
  int seed = 0;
  for (const auto& [workload, ratio] : ratios) {
    results.push_back(Result("a", workload, ++seed, ratio));
    results.push_back(Result("b", workload, seed, 1));
  }
  return results;
}

TEST(StatisticsTest, ComparesOnlyJobsBothRanAndGeometrically) {
  std::vector<JobResult> results = Ratios({{"v", 2}, {"w", 8}});
  results.push_back(Result("a", "v", 99, 100));
  const Comparison comparison = Compare(results, "a", "b");
  EXPECT_EQ(comparison.ratio.jobs, 2);
  EXPECT_EQ(comparison.ratio.workloads, 2);
  EXPECT_NEAR(comparison.ratio.mean, 4, 1e-12);
  EXPECT_EQ(Compare(results, "a", "nobody").ratio.jobs, 0);
}

TEST(StatisticsTest, PacesStandBesideTimesWhereThereAreCurves) {
  std::vector<JobResult> results = Ratios({{"v", 2}, {"w", 8}, {"x", 1}});
  // Of the first job: policy a takes half of b's time to every loss, and yet longer to the target.
  results[0].curve = {{.seconds = 0, .loss = 2}, {.seconds = 5, .loss = 1}};
  results[1].curve = {{.seconds = 0, .loss = 2}, {.seconds = 10, .loss = 1}};
  results[2].curve = {{.seconds = 0, .loss = 2}, {.seconds = 20, .loss = 1}};
  results[3].curve = {{.seconds = 0, .loss = 2}, {.seconds = 10, .loss = 1}};
  const Comparison comparison = Compare(results, "a", "b");
  EXPECT_EQ(comparison.ratio.jobs, 3);
  EXPECT_EQ(comparison.pace.jobs, 2);
  EXPECT_NEAR(comparison.pace.mean, 1, 1e-12);
  EXPECT_NEAR(comparison.worst_pace, 2, 1e-12);
  EXPECT_EQ(comparison.worst_pace_job, "s, w x4, seed 2");
  EXPECT_EQ(comparison.worst_job, "s, w x4, seed 2");
}

TEST(StatisticsTest, AnIntervalOfTwoWorkloadsReachesFromOneToTheOther) {
  // Two groups draw (a, a), (a, b), (b, a) or (b, b): means 2, 4, 4, 8. Student's t with one degree
  // pushes the quantiles to the ends.
  const Interval ratio = Compare(Ratios({{"v", 2}, {"w", 8}}), "a", "b").ratio;
  EXPECT_NEAR(ratio.low, 2, 1e-12);
  EXPECT_NEAR(ratio.high, 8, 1e-12);
}

TEST(StatisticsTest, ManyJobsOfFewWorkloadsDoNotNarrowTheInterval) {
  std::vector<std::pair<std::string, double>> few = {{"u", 0.4}, {"v", 0.5}, {"w", 1.2}};
  std::vector<std::pair<std::string, double>> many;
  for (int k = 0; k < 20; ++k) many.insert(many.end(), few.begin(), few.end());
  const Interval once = Compare(Ratios(few), "a", "b").ratio;
  const Interval often = Compare(Ratios(many), "a", "b").ratio;
  EXPECT_NEAR(often.mean, once.mean, 1e-12);
  EXPECT_NEAR(often.low, once.low, 1e-12);
  EXPECT_NEAR(often.high, once.high, 1e-12);
  EXPECT_FALSE(often.clear());
  EXPECT_EQ(Verdict(often), "no clear difference");
}

TEST(StatisticsTest, AnIntervalOfManyWorkloadsIsStudents) {
  // 30 workloads with log ratios -0.5 and 0.3 in turn: mean -0.1, deviation 0.4068.
  std::vector<std::pair<std::string, double>> ratios;
  for (int k = 0; k < 30; ++k)
    ratios.emplace_back("w" + std::to_string(k), std::exp(k % 2 == 0 ? -0.5 : 0.3));
  const Interval ratio = Compare(Ratios(ratios), "a", "b").ratio;
  const double half = 2.045 * 0.4068 / std::sqrt(30.0);
  EXPECT_NEAR(std::log(ratio.mean), -0.1, 1e-12);
  EXPECT_NEAR(std::log(ratio.low), -0.1 - half, 0.02);
  EXPECT_NEAR(std::log(ratio.high), -0.1 + half, 0.02);
}

TEST(StatisticsTest, JobsOfOneWorkloadAreGroupsOfTheirOwn) {
  const Interval ratio =
      Compare(Ratios({{"w", 0.50}, {"w", 0.52}, {"w", 0.48}, {"w", 0.51}}), "a", "b").ratio;
  EXPECT_EQ(ratio.workloads, 1);
  EXPECT_LT(ratio.low, ratio.mean);
  EXPECT_GT(ratio.high, ratio.mean);
  EXPECT_TRUE(ratio.clear());
  EXPECT_EQ(Verdict(ratio), "faster");
  EXPECT_EQ(Text(ratio).substr(0, 7), "0.502 [");
}

TEST(StatisticsTest, OneJobIsNoEvidence) {
  const Interval ratio = Compare(Ratios({{"w", 0.5}}), "a", "b").ratio;
  EXPECT_FALSE(ratio.clear());
  EXPECT_EQ(Text(ratio), "0.500");
  EXPECT_EQ(Text(Interval{}), "-");
}

TEST(StatisticsTest, CountsWinsTiesAndLossesAndNamesTheWorstJob) {
  const Comparison comparison = Compare(
      Ratios({{"w", 0.97}, {"w", 0.985}, {"w", 1.0}, {"w", 1.019}, {"w", 1.03}, {"v", 1.7}}), "a",
      "b");
  EXPECT_EQ(comparison.wins, 1);
  EXPECT_EQ(comparison.ties, 3);
  EXPECT_EQ(comparison.losses, 2);
  EXPECT_DOUBLE_EQ(comparison.worst_ratio, 1.7);
  EXPECT_EQ(comparison.worst_job, "s, v x4, seed 6");
}

JobResult WithCurve(JobResult result, double samples, std::vector<CurvePoint> curve) {
  result.samples = samples;
  result.curve = std::move(curve);
  return result;
}

TEST(StatisticsTest, EqualTimeAndEpochsAreThoseOfTheFirstToReachTheTarget) {
  // a is first by time (3 s), b by samples (150); c misses after 5 s and 100 samples.
  const std::vector<JobResult> results = {
      WithCurve(Result("a", "w", 1, 3), 300,
                {{1, 100, 2.0, 0.1}, {2, 200, 1.5, 0.3}, {3, 300, 1.0, 0.5}}),
      WithCurve(Result("b", "w", 1, 4), 150,
                {{2, 75, 1.8, 0.2}, {3.5, 120, 1.2, 0.4}, {4, 150, 1.0, 0.5}}),
      WithCurve(Result("c", "w", 1, 8, false), 100, {{2.5, 50, 2.1, 0.15}, {5, 100, 1.9, 0.25}})};
  const std::vector<EqualFigures> figures = CompareAtEqual(results, {"a", "b", "c"});
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[0].policy, "a");
  EXPECT_DOUBLE_EQ(figures[0].accuracy_at_time, 0.5);
  EXPECT_DOUBLE_EQ(figures[1].accuracy_at_time, 0.2);
  EXPECT_DOUBLE_EQ(figures[2].accuracy_at_time, 0.15);
  EXPECT_DOUBLE_EQ(figures[0].loss_at_samples, 2.0);
  EXPECT_DOUBLE_EQ(figures[1].loss_at_samples, 1.0);
  EXPECT_DOUBLE_EQ(figures[2].loss_at_samples, 1.9);  // its last: it never got so far
}

TEST(StatisticsTest, WhenNobodyReachedTheTargetTheShortestRunSaysWhen) {
  const std::vector<JobResult> results = {
      WithCurve(Result("a", "w", 1, 9, false), 300, {{1, 100, 2.0, 0.1}, {4, 300, 1.0, 0.5}}),
      WithCurve(Result("b", "w", 1, 9, false), 150, {{2, 75, 1.8, 0.2}, {3, 150, 1.0, 0.4}})};
  const std::vector<EqualFigures> figures = CompareAtEqual(results, {"a", "b"});
  EXPECT_DOUBLE_EQ(figures[0].accuracy_at_time, 0.1);
  EXPECT_DOUBLE_EQ(figures[1].accuracy_at_time, 0.4);
  EXPECT_DOUBLE_EQ(figures[0].accuracy_at_samples, 0.1);
}

TEST(StatisticsTest, TheBestOfSeveralIsBestOverTheJobsThatAllRan) {
  const std::vector<JobResult> results = {Result("a", "w", 1, 2),   Result("b", "w", 1, 3),
                                          Result("a", "w", 2, 8),   Result("b", "w", 2, 5),
                                          Result("a", "w", 3, 0.1), Result("c", "w", 1, 1)};
  EXPECT_EQ(BestOf(results, {"a", "b"}), "b");  // 2 * 8 against 3 * 5
  EXPECT_EQ(BestOf(results, {"a", "b", "c"}), "c");
  EXPECT_EQ(BestOf(results, {"a", "d"}), "");
}

TEST(StatisticsTest, TheReachedShareIsOfThePolicysOwnJobs) {
  const std::vector<JobResult> results = {Result("a", "w", 1, 2), Result("a", "w", 2, 2, false),
                                          Result("b", "w", 1, 2)};
  EXPECT_DOUBLE_EQ(ReachedShare(results, "a"), 0.5);
  EXPECT_DOUBLE_EQ(ReachedShare(results, "nobody"), 0);
}

}  // namespace
}  // namespace dynamix
