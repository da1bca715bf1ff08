#include "dynamix/ppo/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr int kInputs = 6, kActions = 4;

AgentOptions SmallAgent(int rows) {
  AgentOptions options;
  options.shape = {
      .actor_inputs = kInputs, .critic_inputs = 0, .hidden = {16, 16}, .heads = {kActions}};
  options.rows = rows;
  options.ppo.steps = 20;
  options.idle_action = 2;
  return options;
}

// Random rows, masks, rewards and ends; the same for the same seed.
struct World {
  explicit World(int rows, std::uint64_t seed)
      : actor(rows * kInputs),
        active(rows, 1),
        masks(rows * kActions, 1),
        rewards(rows),
        discounts(rows, .97),
        ends(rows),
        rng(seed) {}

  void Move() {
    for (float& x : actor)
      x = rng.Uniform() < .1 ? std::nanf("") : static_cast<float>(3 + 5 * rng.Normal());
    for (double& r : rewards) r = rng.Normal();
    for (StepEnd& end : ends) end = static_cast<StepEnd>(rng.Uniform() < .1 ? 1 + rng.Below(2) : 0);
    for (std::size_t i = 0; i < masks.size(); ++i)
      masks[i] = i % kActions == 2 || rng.Uniform() < .7 ? 1 : 0;
  }
  Observation See() const { return {actor, {}, active, masks}; }
  Outcome Outcomes() const { return {rewards, discounts, ends, actor}; }

  std::vector<float> actor;
  std::vector<std::uint8_t> active, masks;
  std::vector<double> rewards, discounts;
  std::vector<StepEnd> ends;
  Rng rng;
};

TEST(AgentTest, AnUntrainedAgentTakesItsFirstActionInMostSteps) {
  AgentOptions options = SmallAgent(2000);
  options.first_action = 1;
  World world(options.rows, 3);
  Agent agent(options, 1);
  const std::vector<int>& actions = agent.Act(world.See());
  const auto share = static_cast<double>(std::count(actions.begin(), actions.end(), 1)) / 2000;
  EXPECT_NEAR(share, std::exp(2.2) / (std::exp(2.2) + kActions - 1), 0.05);
  options.first_action = kActions;
  EXPECT_THROW(Agent(options, 1), InputError);
}

UpdateStatistics RunOneUpdate(Agent& agent, World& world) {
  while (!agent.Full()) {
    world.Move();
    agent.Act(world.See());
    agent.Close(world.Outcomes());
  }
  return agent.Update(world.See(), 0);
}

std::vector<float> Weights(const Agent& agent) {
  const auto p = agent.model().network.parameters();
  return {p.begin(), p.end()};
}

// Three steps of one row, rewards 1, 2, 4 and discount 1/2; the second one ends its job. Carried: 1,
// 2 + 1/2, and 4 alone.
TEST(RewardScalerTest, WhatAJobEarnedDoesNotReachTheNextOne) {
  Rollout rollout({.actor_inputs = 1, .critic_inputs = 0, .hidden = {2}, .heads = {2}}, 3, 1);
  rollout.rewards = {1, 2, 4};
  rollout.discounts = {.5, .5, .5};
  rollout.active = {1, 1, 1};
  rollout.ends = {StepEnd::kContinues, StepEnd::kTerminated, StepEnd::kContinues};
  RewardScaler scaler{{0}, {}};
  const double scale = scaler.Update(rollout);
  EXPECT_NEAR(scaler.moments.mean, 2.5, 1e-3);
  EXPECT_NEAR(scale, 1 / std::sqrt(1.5), 1e-3);
  EXPECT_EQ(scaler.running, std::vector<double>{2}) << "of the job under way";
}

TEST(AgentTest, TheFirstRatioIsExactlyOne) {
  Agent agent(SmallAgent(37), 1);
  World world(37, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RunOneUpdate(agent, world).first_ratio_error, 0.0);
}

TEST(AgentTest, SameSeedSameWeightsBitForBit) {
  Agent a(SmallAgent(30), 5), b(SmallAgent(30), 5), c(SmallAgent(30), 6);
  World wa(30, 2), wb(30, 2), wc(30, 2);
  for (int i = 0; i < 3; ++i) {
    RunOneUpdate(a, wa);
    RunOneUpdate(b, wb);
    RunOneUpdate(c, wc);
  }
  EXPECT_EQ(Weights(a), Weights(b));
  EXPECT_NE(Weights(a), Weights(c));
}

TEST(AgentTest, IllegalActionsAreNeverTaken) {
  Agent agent(SmallAgent(50), 1);
  World world(50, 3);
  for (int step = 0; step < 20; ++step) {
    world.Move();
    const std::vector<int>& actions = agent.Act(world.See());
    for (int row = 0; row < 50; ++row) EXPECT_EQ(world.masks[row * kActions + actions[row]], 1);
    agent.Close(world.Outcomes());
  }
}

// Rows 0 to 9 are the same in both; rows 10 and 11 exist only in the larger agent, and are never
// active.
TEST(AgentTest, InactiveRowsChangeNothing) {
  Agent small(SmallAgent(10), 1), large(SmallAgent(12), 1);
  World world(10, 3), wide(12, 99);
  wide.active[10] = wide.active[11] = 0;
  for (int step = 0; step < 20; ++step) {
    world.Move();
    wide.Move();
    std::copy(world.actor.begin(), world.actor.end(), wide.actor.begin());
    std::copy(world.masks.begin(), world.masks.end(), wide.masks.begin());
    std::copy(world.rewards.begin(), world.rewards.end(), wide.rewards.begin());
    std::copy(world.ends.begin(), world.ends.end(), wide.ends.begin());
    const std::vector<int> actions = small.Act(world.See());
    const std::vector<int> all = large.Act(wide.See());
    EXPECT_TRUE(std::equal(actions.begin(), actions.end(), all.begin()));
    EXPECT_EQ(all[10], 2);
    small.Close(world.Outcomes());
    large.Close(wide.Outcomes());
  }
  EXPECT_EQ(small.Update(world.See(), 0).rows, 200);
  EXPECT_EQ(large.Update(wide.See(), 0).rows, 200);
  // Rows are numbered by step and row, so the shuffle meets other numbers in the same order.
  EXPECT_EQ(Weights(small), Weights(large));
}

TEST(AgentTest, ARewardThatIsNoNumberIsLeftOut) {
  Agent agent(SmallAgent(4), 1);
  World world(4, 3);
  while (!agent.Full()) {
    world.Move();
    world.rewards[1] = std::nan("");
    agent.Act(world.See());
    agent.Close(world.Outcomes());
  }
  const UpdateStatistics statistics = agent.Update(world.See(), 0);
  EXPECT_EQ(statistics.rows, 3 * 20);
  EXPECT_EQ(statistics.skipped, 0);
  for (const float w : Weights(agent)) EXPECT_TRUE(std::isfinite(w));
}

TEST(AgentTest, ARewardBeyondAllBoundsDoesNotReachTheWeights) {
  AgentOptions options = SmallAgent(4);
  options.ppo.scale_rewards = options.ppo.normalize_values = false;
  options.ppo.normalize_advantages = false;
  Agent agent(options, 1);
  World world(4, 3);
  while (!agent.Full()) {
    world.Move();
    world.rewards[1] = 1e300;
    agent.Act(world.See());
    agent.Close(world.Outcomes());
  }
  EXPECT_GT(agent.Update(world.See(), 0).skipped, 0);
  for (const float w : Weights(agent)) EXPECT_TRUE(std::isfinite(w));
}

TEST(AgentTest, ALargeStepStopsEarly) {
  AgentOptions options = SmallAgent(30);
  options.ppo.learning_rate = .05;
  options.ppo.target_kl = .001;
  Agent agent(options, 1);
  World world(30, 3);
  const UpdateStatistics statistics = RunOneUpdate(agent, world);
  EXPECT_TRUE(statistics.stopped_early);
  EXPECT_LT(statistics.optimizer_steps, 16);
}

TEST(AgentTest, RescalingKeepsPredictedReturns) {
  ActorCritic model({.actor_inputs = 3, .critic_inputs = 0, .hidden = {8}, .heads = {2}});
  Rng rng(4);
  model.network.Initialize(rng);
  Evaluator evaluator(model.network.shape());
  const std::vector<float> input = {.3f, -.2f, 1};
  const std::vector<int> row = {0};
  double before = 0, after = 0;
  evaluator.Values(model.network, input, row, {&before, 1});
  before = before * model.returns.Deviation() + model.returns.mean;
  model.Rescale({.count = 100, .mean = 40, .variance = 9});
  evaluator.Values(model.network, input, row, {&after, 1});
  EXPECT_NEAR(after * model.returns.Deviation() + model.returns.mean, before, 1e-4);
}

TEST(AgentTest, MisuseIsABug) {
  Agent agent(SmallAgent(2), 1);
  World world(2, 3);
  EXPECT_THROW(agent.Close(world.Outcomes()), CheckFailure);
  EXPECT_THROW((void)agent.Update(world.See(), 0), CheckFailure);
  agent.Act(world.See());
  EXPECT_THROW(agent.Act(world.See()), CheckFailure);
}

TEST(AgentTest, BadOptionsAreRefusedByName) {
  AgentOptions options = SmallAgent(2);
  options.ppo.clip = 0;
  EXPECT_THROW(Agent(options, 1), InputError);
  options = SmallAgent(0);
  EXPECT_THROW(Agent(options, 1), InputError);
  options = SmallAgent(2);
  options.actor_columns_off = {kInputs};
  EXPECT_THROW(Agent(options, 1), InputError);
  options = SmallAgent(2);
  options.ppo.lambda = std::nan("");
  EXPECT_THROW(Agent(options, 1), InputError);
}

TEST(PpoOptionsTest, AnnealsLinearly) {
  PpoOptions options;
  options.learning_rate = 1e-3;
  options.final_learning_rate_share = .1;
  EXPECT_DOUBLE_EQ(options.LearningRate(0), 1e-3);
  EXPECT_DOUBLE_EQ(options.LearningRate(.5), 5.5e-4);
  EXPECT_DOUBLE_EQ(options.LearningRate(2), 1e-4);
  EXPECT_DOUBLE_EQ(options.EntropyCoefficient(1), options.final_entropy_coefficient);
}

}  // namespace
}  // namespace dynamix
