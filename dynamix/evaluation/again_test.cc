#include "dynamix/evaluation/again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/simulator/engine.h"

namespace dynamix {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

JobResult ResultOf(const std::string& job, const std::string& policy, double seconds) {
  JobResult result;
  result.scenario = job;
  result.workload = "w";
  result.policy = policy;
  result.time_to_target_s = seconds;
  result.reached = true;
  return result;
}

// Three jobs: `mine` takes 1.04, 1.06 and 3 times static's time.
Judgement ThreeJobs() {
  Judgement judgement;
  const auto all = DrawPopulation(Population::kValidation);
  judgement.jobs = {all.begin(), all.begin() + 3};
  const double seconds[] = {104, 106, 300};
  for (int i = 0; i < 3; ++i) {
    const std::string& job = judgement.jobs[i].name();
    judgement.results.push_back(ResultOf(job, "static", 100));
    judgement.results.push_back(ResultOf(job, "mine", seconds[i]));
  }
  return judgement;
}

TEST(AgainTest, JobsAreLostWhenTheyAreMoreThanATwentiethSlowerTheWorstFirst) {
  std::vector<std::string> names;
  for (const PopulationJob& job : LostJobs(ThreeJobs(), "mine")) names.push_back(job.name());
  EXPECT_THAT(names, ElementsAre("validation-03", "validation-02"));
  EXPECT_THAT(LostJobs(ThreeJobs(), "static"), SizeIs(0));
}

TEST(AgainTest, OtherSeedsBelongToNoJobOfAnyPopulation) {
  std::set<std::uint64_t> taken;
  std::vector<PopulationJob> jobs;
  for (const Population population :
       {Population::kValidation, Population::kJudge, Population::kMoreValidation})
    for (const PopulationJob& job : DrawPopulation(population)) {
      taken.insert(job.spec.seed);
      jobs.push_back(job);
    }
  const std::vector<PopulationJob> drawn = WithOtherSeeds(jobs, 5);
  ASSERT_THAT(drawn, SizeIs(5 * jobs.size()));
  for (const PopulationJob& job : drawn) EXPECT_TRUE(taken.insert(job.spec.seed).second);
  EXPECT_EQ(drawn[4].name(), jobs[0].name());
  EXPECT_EQ(drawn[5].name(), jobs[1].name());
}

AgainRow RowWith(double low) {
  AgainRow row{.job = "validation-03", .ratios = {1.2, 1.3}};
  row.comparison.ratio = {.mean = 1.25, .low = low, .high = 1.3, .jobs = 2, .workloads = 1};
  return row;
}

TEST(AgainTest, AJobIsRegrettedWhenTheWholeIntervalIsAboveTheMark) {
  EXPECT_FALSE(RowWith(1.04).regretted());
  EXPECT_TRUE(RowWith(1.06).regretted());
  const Again again{.policy = "mine", .seeds = 2, .rows = {RowWith(1.04), RowWith(1.06)}};
  EXPECT_THAT(AgainText(again), HasSubstr("Of 2 jobs that mine lost by more than 5 % in one run, "
                                          "1 are clearly slower"));
  const nlohmann::json json = AgainJson(again);
  EXPECT_EQ(json["jobs"][0]["regretted"], false);
  EXPECT_EQ(json["jobs"][1]["regretted"], true);
  EXPECT_EQ(json["jobs"][1]["ratios"], nlohmann::json({1.2, 1.3}));
  EXPECT_THAT(AgainText({.policy = "mine", .seeds = 2}), HasSubstr("mine lost no job"));
}

// With the quadratic model for training, as in judge_test.cc: 512 samples are slower than
// static's 4 whatever the seed.
TEST(AgainTest, RunsOnlyWhatWasLostWithOtherSeeds) {
  auto jobs = DrawPopulation(Population::kValidation);
  jobs.resize(2);
  for (PopulationJob& job : jobs) {
    job.spec.workload.optimizer = {.learning_rate = 0.05, .planned_samples = 64000};
    job.target_is_loss = true;
  }
  std::set<std::uint64_t> seeds;
  int runs = 0;
  const VirtualMaker make = [&](const JobSpec& job, const VirtualOptions& options) {
    seeds.insert(job.seed);
    ++runs;
    auto cluster =
        std::make_unique<SimulatedCluster>(job, MakeConvergence(job.workload, {}, job.seed));
    cluster->set_evaluate_every(options.evaluate_every);
    return cluster;
  };
  std::vector<PolicySpec> policies = {Fixed(4), Fixed(512)};
  policies[0].name = "static";
  policies[1].name = "mine";
  JudgeOptions options;
  options.runs.threads = 1;
  const Judgement judgement = Judge(Population::kValidation, jobs, policies, make, options);
  const std::size_t lost = LostJobs(judgement, "mine").size();
  ASSERT_GT(lost, 0u);
  seeds.clear();
  runs = 0;
  const Again again =
      RunAgain(Population::kValidation, judgement, "mine", 3, policies, make, options);
  EXPECT_EQ(runs, static_cast<int>(lost) * 3 * 3);  // references, static, mine
  EXPECT_EQ(seeds.size(), lost * 3);
  ASSERT_THAT(again.rows, SizeIs(lost));
  EXPECT_THAT(again.rows[0].ratios, SizeIs(3));
  EXPECT_EQ(again.rows[0].comparison.ratio.jobs, 3);
  EXPECT_TRUE(again.rows[0].regretted()) << AgainText(again);
}

}  // namespace
}  // namespace dynamix
