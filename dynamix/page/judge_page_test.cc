#include "dynamix/page/judge_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

JobResult Result(const PopulationJob& job, const std::string& policy, double time, bool reached) {
  JobResult result;
  result.scenario = job.name();
  result.workload = job.spec.workload.name;
  result.policy = policy;
  result.workers = job.spec.workers;
  result.seed = static_cast<int>(job.spec.seed);
  result.time_to_target_s = time;
  result.reached = reached;
  result.curve = {{1, 100, 1, 0.5}};
  return result;
}

// Three jobs; `mine` is twice as fast as static but misses the last, where it counts as twice as
// slow.
Judgement SmallJudgement() {
  Judgement judgement{.suite = "judge",
                      .policies = {{"static", ""}, {"balanced", ""}, {"mine<1>", "abc"}}};
  const auto all = DrawPopulation(Population::kJudge);
  judgement.jobs = {all.begin(), all.begin() + 3};
  for (std::size_t i = 0; i < 3; ++i) {
    const PopulationJob& job = judgement.jobs[i];
    judgement.targets.push_back({.accuracy = 0.7, .reference_s = 10, .budget_s = 40});
    judgement.results.push_back(Result(job, "static", 20, true));
    judgement.results.push_back(Result(job, "balanced", 15, true));
    judgement.results.push_back(Result(job, "mine<1>", i == 2 ? 40 : 10, i != 2));
  }
  return judgement;
}

TEST(JudgePageTest, HasADotPerJobAndPolicyThatNamesTheJob) {
  const Judgement judgement = SmallJudgement();
  const std::string html = RenderJudgePage(judgement);
  // Against static: balanced and mine; against balanced: static and mine. Three jobs each.
  EXPECT_EQ(Count(html, "class=\"dot\"") + Count(html, "class=\"hollow\""), 12);
  EXPECT_EQ(Count(html, "class=\"hollow\""), 2);
  EXPECT_EQ(Count(html, "<svg"), 2);
  for (const PopulationJob& job : judgement.jobs)
    EXPECT_THAT(html, HasSubstr("0.750 in " + job.name() + ": rule "));
  EXPECT_THAT(html, HasSubstr("2.000, target missed in " + judgement.jobs[2].name()));
  EXPECT_THAT(html, HasSubstr("missed, 40 s"));
  EXPECT_THAT(html, HasSubstr("best rule, balanced"));
}

TEST(JudgePageTest, EscapesNamesAndLoadsNothing) {
  const std::string html = RenderJudgePage(SmallJudgement());
  EXPECT_THAT(html, HasSubstr("mine&lt;1&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("mine<1>")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
}

}  // namespace
}  // namespace dynamix
