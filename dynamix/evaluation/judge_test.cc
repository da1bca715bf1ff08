#include "dynamix/evaluation/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/evaluation/judge_tables.h"
#include "dynamix/simulator/engine.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Jobs of the population with the quadratic model for their training: the judge does not care.
class JudgeTest : public testing::Test {
 protected:
  JudgeTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    const auto all = DrawPopulation(Population::kJudge);
    jobs_ = {all.begin(), all.begin() + 3};
    for (PopulationJob& job : jobs_) {  // a rate that suits the quadratic model
      job.spec.workload.optimizer = {.learning_rate = 0.05, .planned_samples = 64000};
      job.target_is_loss = true;
    }
    options_.cache = (folder_ / "cache").string();
    options_.runs.threads = 2;
    options_.runs.callbacks.begun = [this](long total, long known) {
      total_ = total;
      known_ = known;
    };
  }
  ~JudgeTest() override { fs::remove_all(folder_); }

  VirtualMaker Maker() {
    return [this](const JobSpec& job, const VirtualOptions& options) {
      ++made_;
      auto cluster =
          std::make_unique<SimulatedCluster>(job, MakeConvergence(job.workload, {}, job.seed));
      cluster->set_evaluate_every(options.evaluate_every);
      return cluster;
    };
  }
  Judgement Run(const std::vector<PolicySpec>& policies) {
    return Judge(Population::kJudge, jobs_, policies, Maker(), options_);
  }

  fs::path folder_;
  std::vector<PopulationJob> jobs_;
  JudgeOptions options_;
  std::atomic<int> made_ = 0;
  long total_ = 0, known_ = 0;
};

// Goes by the name of a file.
PolicySpec File(const std::string& name, const std::string& checksum) {
  PolicySpec policy = Fixed(16);
  policy.name = name;
  policy.checksum = checksum;
  return policy;
}

// Goes by the name of a rule; what it does is not what is tested.
PolicySpec Rule(const std::string& name) {
  PolicySpec policy = Fixed(name == "static" ? 4 : 8);
  policy.name = name;
  return policy;
}

TEST_F(JudgeTest, MakesEachRunOnceAndOnlyTheRunsOfANewPolicyAfterwards) {
  const Judgement first = Run({Rule("static"), Rule("balanced")});
  EXPECT_EQ(made_, 9);  // 3 references, 6 runs
  EXPECT_EQ(total_, 9);
  EXPECT_EQ(known_, 0);
  EXPECT_EQ(first.results.size(), 6u);
  EXPECT_EQ(first.targets.size(), 3u);
  made_ = 0;
  const Judgement second = Run({Rule("static"), Rule("balanced"), File("new", "abc")});
  EXPECT_EQ(made_, 3);
  EXPECT_EQ(total_, 12);
  EXPECT_EQ(known_, 9);
  EXPECT_EQ(second.results.size(), 9u);
  EXPECT_EQ(second.results.front().time_to_target_s, first.results.front().time_to_target_s);
  EXPECT_EQ(second.results.front().curve.size(), first.results.front().curve.size());
}

TEST_F(JudgeTest, AJobWhoseReferenceLearnsNothingIsLeftOut) {
  jobs_[1].spec.workload.optimizer.learning_rate = 1e-9;
  const Judgement judgement = Run({Rule("static"), Rule("balanced")});
  EXPECT_EQ(made_, 7);  // 3 references, 4 runs
  EXPECT_THAT(judgement.left_out, ElementsAre("judge-02"));
  EXPECT_EQ(judgement.jobs.size(), 2u);
  EXPECT_EQ(judgement.targets.size(), 2u);
  EXPECT_EQ(judgement.results.size(), 4u);
  EXPECT_THAT(JudgeText(judgement), HasSubstr("judge-02 is left out"));
  EXPECT_EQ(JudgeJson(judgement, "").at("left_out").at(0), "judge-02");
  jobs_ = {jobs_[1]};
  EXPECT_THROW(Run({Rule("static")}), std::runtime_error);
}

TEST_F(JudgeTest, AFileIsKnownByItsChecksumAndARuleByItsName) {
  Run({Rule("static"), File("old.safetensors", "abc")});
  made_ = 0;
  const Judgement again = Run({Rule("static"), File("moved.safetensors", "abc")});
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(again.results.back().policy, "moved.safetensors");
  Run({Rule("static"), File("old.safetensors", "def")});
  EXPECT_EQ(made_, 3);
  options_.fresh = {"static"};
  Run({Rule("static")});
  EXPECT_EQ(made_, 6);
}

// Fixed sizes at twice the base batch under rule none: by samples the step schedule ends after half
// of the steps.
TEST_F(JudgeTest, APolicyMayHaveItsJobsOnTheOtherClockWithRunsAndARowOfItsOwn) {
  for (PopulationJob& job : jobs_) {
    OptimizerOptions& optimizer = job.spec.workload.optimizer;
    optimizer.schedule = Schedule::kStep;
    optimizer.base_batch = 8.0 * job.spec.workers;
  }
  PolicySpec by_steps = File("steps:mine", "abc");
  by_steps.steps = true;
  const Judgement judgement =
      Run({Rule("static"), File("mine", "abc"), by_steps, Rule("steps:balanced")});
  EXPECT_EQ(made_, 15);
  ASSERT_EQ(judgement.results.size(), 12u);
  const JobResult &samples = judgement.results[1], &steps = judgement.results[2];
  EXPECT_EQ(steps.policy, "steps:mine");
  EXPECT_NE(steps.time_to_target_s, samples.time_to_target_s);
  EXPECT_EQ(BaselinesOf(judgement).best_rule, "") << "rules are compared on their own clock";
}

TEST_F(JudgeTest, GoesOnAfterAnInterruption) {
  class Stopped : public std::exception {};
  options_.runs.threads = 1;
  int finished = 0;
  options_.runs.callbacks.finished = [&](const std::string&) { ++finished; };
  options_.runs.callbacks.window = [&] {
    if (finished == 5) throw Stopped();
  };
  EXPECT_THROW(Run({Rule("static"), Rule("balanced")}), Stopped);
  EXPECT_EQ(finished, 5);
  options_.runs.callbacks.window = {};
  made_ = 0;
  EXPECT_EQ(Run({Rule("static"), Rule("balanced")}).results.size(), 6u);
  EXPECT_EQ(known_, 5);
  EXPECT_EQ(made_, 4);
}

TEST_F(JudgeTest, AMissIsBookedWithTheWholeTimeBudgetAlsoWhenSamplesRanOut) {
  // The largest batches use up the samples long before the time.
  for (PopulationJob& job : jobs_) job.spec.scenario.sample_budget = 0.05;
  const Judgement judgement = Run({Rule("static")});
  for (std::size_t i = 0; i < judgement.jobs.size(); ++i) {
    const JobResult& result = judgement.results[i];
    ASSERT_FALSE(result.reached);
    EXPECT_EQ(result.time_to_target_s, judgement.targets[i].budget_s);
    EXPECT_LT(result.curve.back().seconds, judgement.targets[i].budget_s);
  }
}

PopulationJob WithTarget(bool loss, double share) {
  PopulationJob job;
  job.spec.scenario.name = "judge-07";
  job.target_is_loss = loss;
  job.spec.workload.target.run_share = share;
  return job;
}

TEST(MakeTargetTest, IsWhatTheReferenceHadAfterItsShareOfTheRun) {
  const std::vector<CurvePoint> curve = {{1, 100, 2.0, 0.1},
                                         {2, 200, 1.6, 0.4},
                                         {3, 300, 1.7, 0.3},
                                         {4, 400, 1.2, 0.6},
                                         {10, 999, 1.0, 0.9}};
  const JobTarget accuracy = MakeTarget(WithTarget(false, 0.3), curve).value();
  EXPECT_DOUBLE_EQ(accuracy.accuracy, 0.4);  // the best so far, not the last
  EXPECT_EQ(accuracy.loss, 0);
  EXPECT_EQ(accuracy.reference_s, 2);
  EXPECT_EQ(accuracy.reference_samples, 200);
  EXPECT_EQ(accuracy.budget_s, 8);
  const JobTarget loss = MakeTarget(WithTarget(true, 0.3), curve).value();
  EXPECT_EQ(loss.accuracy, 0);
  EXPECT_DOUBLE_EQ(loss.loss, 1.6);
}

TEST(MakeTargetTest, StaysOffTheFlatEndOfACurve) {
  const std::vector<CurvePoint> curve = {
      {1, 100, 2.0, 0.1}, {2, 200, 1.0, 0.89}, {3, 300, 1.0, 0.9}, {10, 999, 1.0, 0.9}};
  const JobTarget target = MakeTarget(WithTarget(false, 0.8), curve).value();
  EXPECT_DOUBLE_EQ(target.accuracy, 0.1 + 0.97 * 0.8);
  EXPECT_EQ(target.reference_s, 2);
}

TEST(MakeTargetTest, NeedsAReferenceThatLearned) {
  const std::vector<CurvePoint> curve = {{1, 100, 2.0, 0.10}, {2, 200, 1.99, 0.11}};
  for (const bool loss : {false, true}) EXPECT_FALSE(MakeTarget(WithTarget(loss, 0.8), curve));
}

TEST_F(JudgeTest, TellsWhoIsFasterAndWhereItIsWorst) {
  const Judgement judgement = Run({Rule("static"), Rule("balanced"), File("mine", "abc")});
  EXPECT_EQ(BaselinesOf(judgement).best_rule, "balanced");
  const std::string text = JudgeText(judgement);
  for (const char* part :
       {"mine: ", "of static's time", "of balanced's time", "Worst against", "judge, 3 jobs",
        "by rule", "by start", "by cluster", "by workers", "by model", "95 % intervals"})
    EXPECT_THAT(text, HasSubstr(part));
  const json object = JudgeJson(judgement, "2026-11-16T12:00:00Z");
  EXPECT_EQ(object["jobs"].size(), 3u);
  EXPECT_EQ(object["jobs"][0]["results"].size(), 3u);
  EXPECT_EQ(object["policies"][2]["checksum"], "abc");
  EXPECT_TRUE(object["policies"][0]["checksum"].is_null());
  EXPECT_TRUE(object["summary"]["mine"]["vs_balanced"].contains("interval"));
  int jobs = 0;
  const std::vector<Breakdown> breakdowns = BreakDown(judgement);
  for (const BreakdownRow& row : breakdowns.front().rows) jobs += row.jobs;
  EXPECT_EQ(jobs, 3);
  EXPECT_THAT(JobsText(judgement.jobs), HasSubstr("judge-01"));
}

TEST_F(JudgeTest, TheResultsFileRemembersWhoLookedWhen) {
  const fs::path file = folder_ / "judge.json";
  const Judgement judgement = Run({Rule("static"), File("mine", "abc")});
  WriteJudgement(file, judgement, "monday");
  WriteJudgement(file, judgement, "tuesday");  // the same look again
  Judgement some = Run({Rule("static"), File("mine", "def")});
  some.whole = false;
  const json told = WriteJudgement(file, some, "wednesday");
  EXPECT_EQ(told["policies"][1]["checksum"], "def");
  std::ifstream text(file);
  const json kept = json::parse(text);
  EXPECT_EQ(kept["date"], "tuesday");
  EXPECT_EQ(kept["policies"][1]["checksum"], "abc");  // the whole judgement stays
  ASSERT_EQ(kept["looks"].size(), 4u);
  EXPECT_EQ(kept["looks"][1]["checksum"], "abc");
  EXPECT_EQ(kept["looks"][1]["date"], "monday");
  EXPECT_EQ(kept["looks"][3]["checksum"], "def");
  EXPECT_EQ(kept["looks"][3]["date"], "wednesday");
  std::ofstream(file) << "{";
  EXPECT_THROW(WriteJudgement(file, judgement, "thursday"), std::runtime_error);
}

TEST(ShortenedTest, ShortensThePlan) {
  const auto jobs = DrawPopulation(Population::kJudge);
  const auto shorter = Shortened(jobs, 0.1);
  EXPECT_DOUBLE_EQ(shorter[5].spec.workload.optimizer.planned_samples,
                   0.1 * jobs[5].spec.workload.optimizer.planned_samples);
}

}  // namespace
}  // namespace dynamix
