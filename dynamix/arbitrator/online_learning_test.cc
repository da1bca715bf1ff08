#include "dynamix/arbitrator/online_learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

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
  return learner.Model({}, {});
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

  // Steps until `updates` were made; returns the rounds that held because of an update.
  int Learn(OnlineLearner& learner, int updates) {
    FakeJob job(3, 200, 1e9);
    Round round = job.Reset();
    int held = 0;
    for (int i = 0; learner.updates() < updates && i < 2000000; ++i) {
      held += learner.updating() ? 1 : 0;
      round = job.Step(learner.Step(round, {.progress_seconds = round.seconds}));
    }
    return held;
  }

  OnlineLearningOptions options_;
  fs::path folder_;
};

TEST_F(OnlineLearnerTest, SavesEveryUpdateAndGoesOnAfterACrash) {
  {
    OnlineLearner learner(Untrained(), 3, options_);
    EXPECT_EQ(learner.updates(), 0);
    Learn(learner, 3);
  }
  EXPECT_TRUE(LoadPolicy((folder_ / OnlineLearner::kPolicyFile).string()).ok());
  OnlineLearner again(Untrained(), 3, options_);
  EXPECT_EQ(again.updates(), 3);
  EXPECT_THAT(again.note(), testing::HasSubstr("after update 3"));
  Learn(again, 4);
  EXPECT_EQ(again.updates(), 4);
}

TEST_F(OnlineLearnerTest, ATornCheckpointFallsBackToTheOneBefore) {
  {
    OnlineLearner learner(Untrained(), 3, options_);
    Learn(learner, 3);
  }
  const fs::path path = folder_ / OnlineLearner::kLearnerFile;
  fs::resize_file(path, fs::file_size(path) / 2);
  {
    OnlineLearner before(Untrained(), 3, options_);
    EXPECT_EQ(before.updates(), 2);
  }
  fs::resize_file(PreviousGeneration(path.string()), 10);
  OnlineLearner fresh(Untrained(), 3, options_);
  EXPECT_EQ(fresh.updates(), 0);
  EXPECT_FALSE(fresh.note().empty()) << "says what became of the checkpoints";
}

TEST_F(OnlineLearnerTest, HoldsWhileTheGuardDecides) {
  OnlineLearner learner(Untrained(), 3, options_);
  FakeJob job(3, 200, 1e9);
  Round round = job.Reset();
  for (int i = 0; i < 50; ++i) {
    const std::vector<int> sizes = learner.Step(round, {.advise = false});
    EXPECT_EQ(sizes, std::vector<int>(3, FakeJob::kStart));
    round = job.Step(sizes);
  }
  EXPECT_EQ(learner.updates(), 0) << "nothing is learned from what it did not decide";
}

TEST_F(OnlineLearnerTest, AFullDiskIsToldAndLearningGoesOn) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file where the folder should be";
  OnlineLearner learner(Untrained(), 3, options_);
  Learn(learner, 2);
  EXPECT_EQ(learner.updates(), 2);
}

}  // namespace
}  // namespace dynamix
