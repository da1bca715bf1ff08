#include "dynamix/ppo/learner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

constexpr int kEnvironments = 6, kSlots = 4, kWidth = 5, kActions = 5;

LearnerOptions SmallLearner(int threads) {
  AgentOptions local;
  local.shape = {.actor_inputs = kWidth, .critic_inputs = 7, .hidden = {16}, .heads = {kActions}};
  local.rows = kEnvironments * kSlots;
  local.ppo.steps = 12;
  AgentOptions team = local;
  team.shape.critic_inputs = 0;
  team.rows = kEnvironments;
  return {.local = local, .team = team, .seed = 3, .threads = threads};
}

// Feeds both heads with numbers from its generator.
struct World {
  explicit World(std::uint64_t seed) : rng(seed) {}

  void Run(Learner& learner, int updates) {
    for (int update = 0; update < updates; ++update) {
      while (!learner.Full()) {
        Draw();
        learner.local()->Act(Local());
        learner.team()->Act(Team());
        std::vector<double> rewards(kEnvironments * kSlots), discounts(rewards.size(), .95);
        for (double& r : rewards) r = rng.Normal();
        const auto one_each = static_cast<std::size_t>(kEnvironments);
        learner.local()->Close({rewards, discounts, {}, {}});
        learner.team()->Close(
            {std::span(rewards).first(one_each), std::span(discounts).first(one_each), {}, {}});
      }
      Draw();
      last = learner.Update(Local(), Team(), .3);
    }
  }
  void Draw() {
    for (auto* rows : {&local, &critic, &team})
      for (float& x : *rows) x = static_cast<float>(rng.Normal());
    for (auto& flag : active) flag = rng.Uniform() < .7 ? 1 : 0;
  }
  Observation Local() const { return {local, critic, active, {}}; }
  Observation Team() const { return {team, {}, {}, {}}; }

  Rng rng;
  std::vector<float> local = std::vector<float>(kEnvironments * kSlots * kWidth);
  std::vector<float> critic = std::vector<float>(kEnvironments * kSlots * 7);
  std::vector<float> team = std::vector<float>(kEnvironments * kWidth);
  std::vector<std::uint8_t> active = std::vector<std::uint8_t>(kEnvironments * kSlots, 1);
  LearnerStatistics last;
};

std::vector<float> Weights(Learner& learner) {
  const auto a = learner.local()->model().network.parameters();
  const auto b = learner.team()->model().network.parameters();
  std::vector<float> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class LearnerTest : public testing::Test {
 protected:
  ~LearnerTest() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(PreviousGeneration(path_));
  }
  std::string path_ = std::filesystem::path(testing::TempDir()) /
                      ("dynamix_learner_" + std::to_string(::getpid()) + ".safetensors");
};

TEST_F(LearnerTest, TwoThreadsLearnWhatOneDoes) {
  Learner one(SmallLearner(1)), two(SmallLearner(2));
  World a(9), b(9);
  a.Run(one, 3);
  b.Run(two, 3);
  EXPECT_EQ(Weights(one), Weights(two));
  EXPECT_EQ(a.last.team->entropy, b.last.team->entropy);
}

TEST_F(LearnerTest, ARestoredRunContinuesBitForBit) {
  Learner whole(SmallLearner(1)), resumed(SmallLearner(1));
  World a(9);
  a.Run(whole, 2);
  ASSERT_TRUE(whole.Save(path_).ok());
  World b = a;
  a.Run(whole, 3);
  LearnerOptions other = SmallLearner(1);
  other.seed = 77;  // everything that matters comes from the file
  Learner restored(other);
  const Status status = restored.Restore(path_);
  ASSERT_TRUE(status.ok()) << status.error();
  b.Run(restored, 3);
  EXPECT_EQ(Weights(whole), Weights(restored));
  EXPECT_EQ(restored.local()->updates(), 5);
}

TEST_F(LearnerTest, ADamagedCheckpointChangesNothing) {
  Learner learner(SmallLearner(1));
  World world(9);
  world.Run(learner, 1);
  ASSERT_TRUE(learner.Save(path_).ok());
  std::string bytes = ReadBytes(path_).value();
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path_, std::ios::binary) << bytes;
  const std::vector<float> before = Weights(learner);
  EXPECT_FALSE(learner.Restore(path_).ok());
  EXPECT_EQ(Weights(learner), before);
}

TEST_F(LearnerTest, ACheckpointOfAnotherShapeIsRefused) {
  Learner learner(SmallLearner(1));
  ASSERT_TRUE(learner.Save(path_).ok());
  LearnerOptions wide = SmallLearner(1);
  wide.local->shape.hidden = {17};
  EXPECT_FALSE(Learner(wide).Restore(path_).ok());
  LearnerOptions alone = SmallLearner(1);
  alone.team.reset();
  EXPECT_FALSE(Learner(alone).Restore(path_).ok());
  LearnerOptions rows = SmallLearner(1);
  rows.team->rows = 7;
  EXPECT_FALSE(Learner(rows).Restore(path_).ok());
}

TEST_F(LearnerTest, SavesBetweenRolloutsOnly) {
  Learner learner(SmallLearner(1));
  World world(9);
  world.Draw();
  learner.local()->Act(world.Local());
  EXPECT_THROW((void)learner.Save(path_), CheckFailure);
}

TEST_F(LearnerTest, EitherHeadCanBeSwitchedOff) {
  LearnerOptions options = SmallLearner(2);
  options.team.reset();
  Learner learner(options);
  EXPECT_EQ(learner.team(), nullptr);
  EXPECT_FALSE(learner.Model({.team = false, .local = true}, {}, {}).team.has_value());
  options.local.reset();
  EXPECT_THROW(Learner{options}, InputError);
}

TEST_F(LearnerTest, AdoptsAPolicyOfItsShape) {
  Learner teacher(SmallLearner(1)), pupil(SmallLearner(1));
  World world(9);
  world.Run(teacher, 1);
  ASSERT_TRUE(pupil.Adopt(teacher.Model({}, {}, {})).ok());
  EXPECT_EQ(Weights(teacher), Weights(pupil));
  LearnerOptions wide = SmallLearner(1);
  wide.team->shape.hidden = {17};
  EXPECT_FALSE(Learner(wide).Adopt(teacher.Model({}, {}, {})).ok());
}

}  // namespace
}  // namespace dynamix
