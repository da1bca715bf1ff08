#include "dynamix/evaluation/population.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "dynamix/evaluation/learning_tasks.h"
#include "dynamix/record/run_config.h"
#include "dynamix/simulator/miniatures/ranges.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using ModelAndData = std::pair<std::string, std::string>;

constexpr Population kAll[] = {Population::kValidation, Population::kJudge,
                               Population::kMoreValidation};

std::string Text(const PopulationJob& job) {
  return FormatRunConfig({.backend = "virtual", .policy = "", .job = job.spec});
}

TEST(PopulationTest, IsLargeEnoughAndTheSameEveryTime) {
  EXPECT_GE(DrawPopulation(Population::kValidation).size(), 40u);
  EXPECT_GE(DrawPopulation(Population::kJudge).size(), 60u);
  for (const Population population : kAll) {
    const auto first = DrawPopulation(population), second = DrawPopulation(population);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(Text(first[i]), Text(second[i]));
  }
}

TEST(PopulationTest, NamesAreThoseOfTheSuites) {
  EXPECT_EQ(ParsePopulation("judge"), Population::kJudge);
  EXPECT_EQ(ParsePopulation("validation-jobs"), Population::kValidation);
  EXPECT_FALSE(ParsePopulation("validation"));  // a folder of simulated scenarios
  for (const Population population : kAll) EXPECT_EQ(ParsePopulation(Name(population)), population);
}

TEST(PopulationTest, DrawsShareNeitherNamesNorSeedsNorJobs) {
  std::set<std::string> names, texts;
  std::set<std::uint64_t> seeds;
  std::size_t jobs = 0;
  for (const Population population : kAll) {
    for (PopulationJob job : DrawPopulation(population)) {
      ++jobs;
      names.insert(job.name());
      seeds.insert(job.spec.seed);
      job.spec.scenario.name = "";  // the same job under another name would still be the same
      job.spec.seed = 0;
      texts.insert(Text(job));
    }
  }
  EXPECT_EQ(names.size(), jobs);
  EXPECT_EQ(seeds.size(), jobs);
  EXPECT_EQ(texts.size(), jobs);
}

TEST(PopulationTest, EveryValueOfEveryFactorAppearsEquallyOften) {
  for (const Population population : kAll) {
    const auto jobs = DrawPopulation(population);
    std::map<std::string, std::map<std::string, int>> counts;
    for (const PopulationJob& job : jobs)
      for (const auto& [factor, value] : Factors(job)) ++counts[factor][value];
    // What a model allows: not every one has all optimizers, targets and data.
    const std::map<std::string, int> slack = {{"data", 1000}, {"optimizer", 6}, {"target", 6}};
    for (const auto& [factor, values] : counts) {
      const int expected = static_cast<int>(jobs.size() / values.size());
      const int off = slack.contains(factor) ? slack.at(factor) : 1;
      for (const auto& [value, count] : values) {
        EXPECT_GE(count, std::max(1, expected - off)) << factor << " " << value;
        EXPECT_LE(count, expected + off) << factor << " " << value;
      }
    }
    EXPECT_EQ(counts["cluster"].size(), static_cast<std::size_t>(kClusterKindCount));
    EXPECT_EQ(counts["rule"].size(), static_cast<std::size_t>(kLearningRateRuleCount));
    EXPECT_EQ(counts["schedule"].size(), static_cast<std::size_t>(kScheduleCount));
    EXPECT_EQ(counts["start"].size(), static_cast<std::size_t>(kStartKindCount));
    EXPECT_EQ(counts["learning rate"].size(), static_cast<std::size_t>(kRateKindCount));
    EXPECT_EQ(counts["workers"].size(), 4u);
    EXPECT_GE(counts["model"].size(), 5u);
  }
}

TEST(PopulationTest, EveryJobIsValidAndStartsAsItsKindSays) {
  for (const Population population : kAll) {
    for (const PopulationJob& job : DrawPopulation(population)) {
      SCOPED_TRACE(job.name());
      EXPECT_NO_THROW(job.spec.scenario.Validate());
      EXPECT_NO_THROW(job.spec.workload.Validate());
      const double global = job.spec.scenario.start_batch * job.spec.workers;
      EXPECT_EQ(global, job.start_scale * job.spec.workload.optimizer.base_batch);
      const double off = std::max(job.start_scale, 1 / job.start_scale);
      EXPECT_GE(off, job.start == StartKind::kTuned ? 1 : job.start == StartKind::kBad ? 4 : 2);
      EXPECT_LE(off, job.start == StartKind::kTuned ? 1 : job.start == StartKind::kBad ? 16 : 8);
      EXPECT_TRUE(job.start != StartKind::kScaledOut || job.start_scale > 1);
    }
  }
}

// Of the cluster as the model has it, before anything happens, without loss.
double MeasuredRatio(PopulationJob job) {
  for (NodeGroup& group : job.spec.scenario.nodes) group.node.loss = 0;
  const Cluster cluster(job.spec.scenario, job.spec.workload.cost, job.spec.workers);
  const double share = job.spec.workload.optimizer.base_batch / job.spec.workers;
  return cluster.CommunicationMs() / (share * job.spec.workload.cost.sample_ms);
}

TEST(PopulationTest, ExchangesSpanWhatRealOnesDo) {
  for (const Population population : kAll) {
    double least = 1e9, most = 0;
    for (const PopulationJob& job : DrawPopulation(population)) {
      SCOPED_TRACE(job.name());
      least = std::min(least, job.exchange_ratio);
      most = std::max(most, job.exchange_ratio);
      EXPECT_NEAR(MeasuredRatio(job) / job.exchange_ratio, 1, 1e-9);
      EXPECT_EQ(job.exchange_ratio >= 4, job.cluster == ClusterKind::kNetworkBound);
    }
    EXPECT_LT(least, 0.04);
    EXPECT_GT(most, 35);
  }
}

TEST(PopulationTest, LossCutsTheRateOfLossyLinks) {
  for (PopulationJob job : DrawPopulation(Population::kJudge)) {
    if (job.cluster != ClusterKind::kLossy) continue;
    const Cluster lossy(job.spec.scenario, job.spec.workload.cost, job.spec.workers);
    const double with = lossy.CommunicationMs();
    for (NodeGroup& group : job.spec.scenario.nodes) group.node.loss = 0;
    const Cluster sound(job.spec.scenario, job.spec.workload.cost, job.spec.workers);
    EXPECT_GT(with, 1.5 * sound.CommunicationMs()) << job.name();
    EXPECT_LT(with, 7 * sound.CommunicationMs()) << job.name();
  }
}

// What learning sees: the files it starts from, and its miniatures of Fashion-MNIST.
std::set<ModelAndData> SeenByLearning() {
  std::set<ModelAndData> seen;
  for (const std::string& name : FittedWorkloads()) {
    const fs::path file = fs::path(DYNAMIX_SOURCE_DIR) / "workloads" / (name + ".toml");
    const ModelOptions model = LoadWorkload(file.string()).model;
    seen.emplace(model.name, model.dataset);
  }
  const std::vector<MiniatureFamily> families = MiniatureRanges().families;
  if (std::count(families.begin(), families.end(), MiniatureFamily::kFashion) > 0)
    seen.emplace("mlp", "fashion_mnist");
  return seen;
}

TEST(PopulationTest, NoModelIsJudgedWithDataThatLearningSeesItWith) {
  const std::set<ModelAndData> seen = SeenByLearning();
  EXPECT_GE(seen.size(), 4u);
  std::set<ModelAndData> judged;
  for (const ModelOptions& model : JudgedModels()) judged.emplace(model.name, model.dataset);
  for (const Population population : kAll)
    for (const PopulationJob& job : DrawPopulation(population))
      EXPECT_TRUE(judged.contains({job.spec.workload.model.name, job.spec.workload.model.dataset}));
  for (const ModelAndData& both : judged)
    EXPECT_FALSE(seen.contains(both)) << both.first << " on " << both.second;
}

}  // namespace
}  // namespace dynamix
