#include "dynamix/evaluation/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/report.h"

namespace dynamix {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ComparedRun Compared(const std::string& policy, int seed, double seconds, bool reached,
                     double accuracy) {
  return {policy,
          seed,
          {{"time_to_target_s", seconds},
           {"reached", reached},
           {"accuracy", accuracy},
           {"samples", 1000},
           {"mean_wait_share", 0.25},
           {"iteration_ms", 50},
           {"overhead_share", json()},
           {"first_batches", {32, 32}},
           {"last_batches", {48, 16}}}};
}

TEST(ComparisonTest, TimesAreGeometricMeansOverSeedsAndAccuraciesPlainOnes) {
  const auto policies =
      ComparePolicies({Compared("static", 1, 10, true, 0.8), Compared("x", 1, 5, true, 0.9),
                       Compared("static", 2, 40, true, 0.9)});
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[0].policy, "static");
  EXPECT_NEAR(policies[0].time_s, 20, 1e-9);
  EXPECT_NEAR(policies[0].accuracy, 0.85, 1e-12);
  EXPECT_TRUE(IsMissing(policies[1].overhead_share));
}

TEST(ComparisonTest, TheFastestThatAlwaysReachedTheTargetWins) {
  const auto policies =
      ComparePolicies({Compared("static", 1, 40, true, 0.86), Compared("fast", 1, 20, true, 0.86),
                       Compared("cut", 1, 10, false, 0.80), Compared("next", 1, 25, true, 0.87)});
  EXPECT_EQ(
      Verdict(policies, false),
      "fast won: the target in 20.0 s, 50 % less time than static (40.0 s) and 20 % less time "
      "than next (25.0 s), the next best. One seed: it may have been chance.");
}

TEST(ComparisonTest, WhoReachedItInSomeSeedsOnlyDoesNotWin) {
  const auto policies =
      ComparePolicies({Compared("static", 1, 40, true, 0.86), Compared("static", 2, 40, true, 0.86),
                       Compared("lucky", 1, 5, true, 0.86), Compared("lucky", 2, 20, false, 0.8)});
  EXPECT_EQ(Verdict(policies, false),
            "no clear winner: 2 seeds do not tell static and lucky apart; static was ahead: the "
            "target in 40.0 s, which lucky missed in 1 of 2 seeds, the next best.");
}

TEST(ComparisonTest, WhoWaitedForNothingMissedNothing) {
  std::vector<ComparedRun> runs = {Compared("static", 1, 40, false, 0.86),
                                   Compared("x", 1, 30, false, 0.88)};
  for (ComparedRun& run : runs) run.summary["has_target"] = false;
  EXPECT_THAT(ComparisonTable(ComparePolicies(runs)), HasSubstr("none, ran 40.0 s"));
  EXPECT_THAT(Verdict(ComparePolicies(runs), false),
              HasSubstr("No target was named. By accuracy, x won: accuracy 0.8800"));
  for (ComparedRun& run : runs) run.summary["accuracy"] = json();
  EXPECT_THAT(Verdict(ComparePolicies(runs), false), HasSubstr("Nothing tells the runs apart"));
}

TEST(ComparisonTest, ABaselineThatMissedTheTargetIsALowerBound) {
  const auto policies = ComparePolicies(
      {Compared("static", 1, 40, false, 0.80), Compared("fast", 1, 20, true, 0.86)});
  EXPECT_EQ(Verdict(policies, false),
            "fast won: the target in 20.0 s, at least 50 % less time than static (> 40.0 s). One "
            "seed: it may have been chance.");
}

TEST(ComparisonTest, ATargetThatIsALossIsComparedByLoss) {
  const auto by_loss = [](const std::string& policy, double loss) {
    ComparedRun run = Compared(policy, 1, 40, false, 0.5);
    run.summary["target_loss"] = 1.8;
    run.summary["loss"] = loss;
    return run;
  };
  const auto policies = ComparePolicies({by_loss("static", 2.25), by_loss("other", 2)});
  EXPECT_THAT(ComparisonTable(policies), testing::AllOf(HasSubstr("loss"), HasSubstr("2.250")));
  EXPECT_THAT(ComparisonTable(policies), testing::Not(HasSubstr("accuracy")));
  EXPECT_EQ(Verdict(policies, false),
            "Nobody reached the target in every run. By loss, other won: loss 2.000, 0.250 below "
            "static (2.250). One seed: it may have been chance.");
}

TEST(ComparisonTest, WithoutATargetReachedAccuracyDecidesAndItSaysSo) {
  const auto policies = ComparePolicies(
      {Compared("static", 1, 40, false, 0.80), Compared("other", 1, 40, false, 0.82)});
  EXPECT_EQ(Verdict(policies, false),
            "Nobody reached the target in every run. By accuracy, other won: accuracy 0.8200, 2.00 "
            "points above static (0.8000). One seed: it may have been chance.");
  EXPECT_THAT(Verdict(policies, true), testing::StartsWith("other won: accuracy 0.8200"));
}

TEST(ComparisonTest, ALeadThatChanceExplainsIsNoClearWinner) {
  std::vector<ComparedRun> runs;
  for (int seed = 1; seed <= 3; ++seed) {
    runs.push_back(Compared("static", seed, 60, true, 0.86));
    runs.push_back(Compared("steady", seed, 20 + 0.1 * seed, true, 0.86));
    runs.push_back(Compared("lucky", seed, seed == 1 ? 8 : 24, true, 0.86));
  }
  EXPECT_THAT(Verdict(ComparePolicies(runs), false),
              testing::StartsWith("no clear winner: 3 seeds do not tell lucky and steady apart; "
                                  "lucky was ahead: the target in 16.6 s"));
  for (ComparedRun& run : runs)
    if (run.policy == "lucky") run.summary["time_to_target_s"] = 15 + 0.1 * run.seed;
  const auto policies = ComparePolicies(runs);
  EXPECT_THAT(Verdict(policies, false), testing::StartsWith("lucky won: the target in 15.2 s"));
  EXPECT_NEAR(policies[1].shortest_s, 20.1, 1e-9);
  EXPECT_NEAR(policies[1].longest_s, 20.3, 1e-9);
}

TEST(ComparisonTest, TheBaselineMayWinAndAFailedRunIsNotCompared) {
  const auto policies = ComparePolicies({Compared("static", 1, 10, true, 0.86),
                                         Compared("slow", 1, 20, true, 0.86),
                                         {"broken", 1, json()}});
  EXPECT_EQ(Verdict(policies, false),
            "static won: the target in 10.0 s, 50 % less time than slow (20.0 s), the next best. "
            "One seed: it may have been chance.");
  const std::string table = ComparisonTable(policies);
  EXPECT_THAT(table, HasSubstr("failed"));
  EXPECT_THAT(table, HasSubstr("48,16"));
  EXPECT_EQ(Verdict(ComparePolicies({{"broken", 1, json()}}), false), "Every run failed.");
}

}  // namespace
}  // namespace dynamix
