#include "dynamix/arbitrator/online_learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

// An untrained policy with both heads.
PolicyModel Untrained() {
  LearningOptions learning;
  learning.max_workers = 3;
  const Learner learner(MakeLearnerOptions(learning, {}, {}, {16}, 3));
  return learner.Model(learning.actions, learning.objective, {});
}

class OnlineLearnerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        ("online_" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
    options_.folder = folder_.string();
    options_.team_ppo.steps = options_.local_ppo.steps = 8;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Steps until `updates` were made.
  void Learn(Arbitrator& arbitrator, int updates) {
    FakeJob job(3, 200, 1e9);
    Round round = job.Reset();
    for (int i = 0; arbitrator.updates() < updates && i < 2000000; ++i)
      round = job.Step(arbitrator.Step(round, {.progress_seconds = round.seconds}).sizes);
  }

  // What it is told at the start is kept in `note`.
  std::unique_ptr<Arbitrator> Make(std::string* note = nullptr, bool guard = true) {
    const PolicyModel model = Untrained();
    auto learner = std::make_unique<OnlineLearner>(model, 3, options_);
    if (note != nullptr) *note = learner->note();
    return std::make_unique<Arbitrator>(
        PolicySpec{"untrained", model.actions, {}},
        ArbitratorOptions{.guard = {.on = guard}, .learner = std::move(learner)});
  }

  OnlineLearningOptions options_;
  fs::path folder_;
};

TEST_F(OnlineLearnerTest, SavesEveryUpdateAndGoesOnAfterACrash) {
  {
    const auto arbitrator = Make();
    EXPECT_EQ(arbitrator->updates(), 0);
    Learn(*arbitrator, 3);
  }
  EXPECT_TRUE(LoadPolicy((folder_ / OnlineLearner::kPolicyFile).string()).ok());
  std::string note;
  const auto again = Make(&note);
  EXPECT_EQ(again->updates(), 3);
  EXPECT_THAT(note, testing::HasSubstr("after update 3"));
  Learn(*again, 4);
  EXPECT_EQ(again->updates(), 4);
}

TEST_F(OnlineLearnerTest, ATornCheckpointFallsBackToTheOneBefore) {
  Learn(*Make(), 3);
  const fs::path path = folder_ / OnlineLearner::kLearnerFile;
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(Make()->updates(), 2);
  fs::resize_file(PreviousGeneration(path.string()), 10);
  std::string note;
  EXPECT_EQ(Make(&note)->updates(), 0);
  EXPECT_FALSE(note.empty()) << "says what became of the checkpoints";
}

TEST_F(OnlineLearnerTest, LearnsForTheObjectiveOfThePolicyItStartsFrom) {
  PolicyModel model = Untrained();
  model.objective.team_discount = 0.9;
  const OnlineLearner learner(model, 3, options_);
  EXPECT_EQ(learner.options().objective.team_discount, 0.9);
  Learn(*Make(), 1);
  const PolicyModel saved = LoadPolicy((folder_ / OnlineLearner::kPolicyFile).string()).value();
  EXPECT_EQ(Format(saved.objective), Format(Objective{})) << "and hands it on";
}

TEST_F(OnlineLearnerTest, HoldsWhileTheGuardDecides) {
  const auto arbitrator = Make();
  FakeJob job(3, 200, 1e9);
  Round round = job.Reset();
  for (RoundEntry& entry : round.entries) entry.report->compute_ms = kMissing;
  for (int i = 0; i < 50; ++i) {  // without measurements the guard never lets it advise
    const Decision decision = arbitrator->Step(round);
    EXPECT_EQ(decision.guard, Guard::State::kMeasures);
    EXPECT_EQ(decision.sizes, std::vector<int>(3, FakeJob::kStart));
  }
  EXPECT_EQ(arbitrator->updates(), 0) << "nothing is learned from what it did not decide";
}

TEST_F(OnlineLearnerTest, AJobMayEndWhileItLearns) {
  options_.team_ppo.epochs = options_.local_ppo.epochs = 100;  // long enough to be under way
  const auto arbitrator = Make();
  FakeJob job(3, 200, 1e9);
  Round round = job.Reset();
  for (int i = 0; i < options_.team_ppo.steps + 1; ++i)
    round = job.Step(arbitrator->Step(round, {.progress_seconds = round.seconds}).sizes);
}

TEST_F(OnlineLearnerTest, AFullDiskIsToldAndLearningGoesOn) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file where the folder should be";
  const auto arbitrator = Make();
  Learn(*arbitrator, 2);
  EXPECT_EQ(arbitrator->updates(), 2);
}

}  // namespace
}  // namespace dynamix
