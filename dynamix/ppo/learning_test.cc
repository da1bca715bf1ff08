// Small environments that each isolate one fault: what goes wrong when this test alone fails.
#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/ppo/agent.h"

namespace dynamix {
namespace {

AgentOptions MakeOptions(int inputs, int actions, int rows, int steps) {
  AgentOptions options;
  options.shape = {
      .actor_inputs = inputs, .critic_inputs = 0, .hidden = {32, 32}, .heads = {actions}};
  options.rows = rows;
  options.ppo.steps = steps;
  options.ppo.learning_rate = 3e-3;
  options.ppo.final_entropy_coefficient = 0;
  return options;
}

// Probability of each action, and the predicted return, of one input row.
struct Belief {
  std::vector<double> probabilities;
  double value = 0;
};

Belief Ask(const Agent& agent, std::vector<float> row) {
  const ActorCritic& model = agent.model();
  model.actor_inputs.Apply(row, row);
  Evaluator evaluator(model.network.shape());
  const std::vector<int> first = {0};
  std::vector<float> logits(model.network.shape().logit_count());
  Belief belief;
  evaluator.Logits(model.network, row, first, logits);
  evaluator.Values(model.network, row, first, {&belief.value, 1});
  belief.value = belief.value * model.returns.Deviation() + model.returns.mean;
  double sum = 0;
  for (const float z : logits) belief.probabilities.push_back(std::exp(z));
  for (const double p : belief.probabilities) sum += p;
  for (double& p : belief.probabilities) p /= sum;
  return belief;
}

// Fault: sign or scale of the policy gradient.
TEST(LearningTest, BanditFindsTheBestArm) {
  constexpr int kRows = 32;
  Agent agent(MakeOptions(1, 5, kRows, 8), 1);
  const std::vector<float> rows(kRows, 1);
  const std::vector<double> discounts(kRows, .99), arms = {.1, .5, .9, .4, .2};
  const std::vector<StepEnd> ends(kRows, StepEnd::kTerminated);
  std::vector<double> rewards(kRows);
  Rng rng(2);
  for (int update = 0; update < 40; ++update) {
    while (!agent.Full()) {
      const std::vector<int>& actions = agent.Act({rows, {}, {}, {}});
      for (int r = 0; r < kRows; ++r) rewards[r] = arms[actions[r]] + .3 * rng.Normal();
      agent.Close({rewards, discounts, ends, {}});
    }
    (void)agent.Update({rows, {}, {}, {}}, update / 40.0);
  }
  EXPECT_GT(Ask(agent, {1}).probabilities[2], .9);
}

// Fault: advantages that do not reach back, or leak across the end of an episode. Only the first
// action counts, and its reward comes nine steps later.
TEST(LearningTest, CreditReachesTheActionThatEarnedIt) {
  constexpr int kRows = 16, kLength = 10;
  Agent agent(MakeOptions(kLength, 2, kRows, 4 * kLength), 1);
  std::vector<float> rows(kRows * kLength);
  const std::vector<double> discounts(kRows, .99);
  std::vector<double> rewards(kRows);
  std::vector<StepEnd> ends(kRows);
  std::vector<int> first(kRows);
  int time = 0;
  auto show = [&] {
    std::fill(rows.begin(), rows.end(), 0.0f);
    for (int r = 0; r < kRows; ++r) rows[r * kLength + time] = 1;
  };
  show();
  for (int update = 0; update < 40; ++update) {
    while (!agent.Full()) {
      const std::vector<int>& actions = agent.Act({rows, {}, {}, {}});
      const bool last = time == kLength - 1;
      for (int r = 0; r < kRows; ++r) {
        if (time == 0) first[r] = actions[r];
        rewards[r] = last && first[r] == 1 ? 1 : 0;
        ends[r] = last ? StepEnd::kTerminated : StepEnd::kContinues;
      }
      time = (time + 1) % kLength;
      show();
      agent.Close({rewards, discounts, ends, {}});
    }
    (void)agent.Update({rows, {}, {}, {}}, update / 40.0);
  }
  std::vector<float> start(kLength);
  start[0] = 1;
  EXPECT_GT(Ask(agent, start).probabilities[1], .9);
}

// Fault: masks that are not applied to the ratio, so that the best arm's ghost pulls at the others.
TEST(LearningTest, TheBestLegalArmWinsWhenTheBestIsIllegal) {
  constexpr int kRows = 32, kArms = 4;
  Agent agent(MakeOptions(2, kArms, kRows, 8), 1);
  std::vector<float> rows(kRows * 2);
  std::vector<std::uint8_t> masks(kRows * kArms, 1);
  for (int r = 0; r < kRows; ++r) {
    rows[r * 2 + r % 2] = 1;
    masks[r * kArms + 3] = r % 2 == 0 ? 1 : 0;  // arm 3 is illegal in every second row
  }
  const std::vector<double> discounts(kRows, .99), arms = {.2, .3, .6, 1};
  const std::vector<StepEnd> ends(kRows, StepEnd::kTerminated);
  std::vector<double> rewards(kRows);
  for (int update = 0; update < 60; ++update) {
    while (!agent.Full()) {
      const std::vector<int>& actions = agent.Act({rows, {}, {}, masks});
      for (int r = 0; r < kRows; ++r) {
        ASSERT_TRUE(masks[r * kArms + actions[r]]);
        rewards[r] = arms[actions[r]];
      }
      agent.Close({rewards, discounts, ends, {}});
    }
    (void)agent.Update({rows, {}, {}, masks}, update / 60.0);
  }
  EXPECT_GT(Ask(agent, {1, 0}).probabilities[3], .9);
  const Belief masked = Ask(agent, {0, 1});
  EXPECT_GT(masked.probabilities[2] / (1 - masked.probabilities[3]), .9);
}

// Reward 1 for ever, but the environment starts anew every five steps.
double ValueOfAnEndlessReward(StepEnd every_fifth) {
  constexpr int kRows = 16;
  AgentOptions options = MakeOptions(1, 2, kRows, 20);
  options.ppo.scale_rewards = false;
  Agent agent(options, 1);
  const std::vector<float> rows(kRows, 1);
  const std::vector<double> discounts(kRows, .9), rewards(kRows, 1);
  int time = 0;
  for (int update = 0; update < 60; ++update) {
    while (!agent.Full()) {
      agent.Act({rows, {}, {}, {}});
      const std::vector<StepEnd> ends(kRows, ++time % 5 == 0 ? every_fifth : StepEnd::kContinues);
      agent.Close({rewards, discounts, ends, rows});
    }
    (void)agent.Update({rows, {}, {}, {}}, 0);
  }
  return Ask(agent, {1}).value;
}

// Fault: a time limit taken for the end of the world. True value: 1 / (1 - gamma).
TEST(LearningTest, TruncationDoesNotLowerTheValue) {
  EXPECT_NEAR(ValueOfAnEndlessReward(StepEnd::kTruncated), 10, .3);
}

// The mean over the five positions of (1 - .9^k) / (1 - .9).
TEST(LearningTest, TerminationDoes) {
  EXPECT_NEAR(ValueOfAnEndlessReward(StepEnd::kTerminated), 2.63, .3);
}

// Fault: rows of one environment mixed up, or a shared network that cannot tell them apart. Eight
// agents see a bit each; all get the share of agents that repeated their own bit. Some are away in
// each step.
TEST(LearningTest, ManyAgentsShareOneNetworkAndATeamReward) {
  constexpr int kTeams = 16, kAgents = 8, kRows = kTeams * kAgents;
  Agent agent(MakeOptions(1, 2, kRows, 16), 1);
  std::vector<float> rows(kRows);
  std::vector<std::uint8_t> active(kRows);
  const std::vector<double> discounts(kRows, .5);
  std::vector<double> rewards(kRows);
  Rng rng(3);
  auto show = [&] {
    for (int r = 0; r < kRows; ++r) {
      rows[r] = rng.Uniform() < .5 ? 1 : -1;
      active[r] = rng.Uniform() < .8 ? 1 : 0;
    }
  };
  show();
  for (int update = 0; update < 60; ++update) {
    while (!agent.Full()) {
      const std::vector<int>& actions = agent.Act({rows, {}, active, {}});
      for (int team = 0; team < kTeams; ++team) {
        double right = 0, here = 0;
        for (int r = team * kAgents; r < (team + 1) * kAgents; ++r) {
          here += active[r];
          right += active[r] && actions[r] == (rows[r] > 0 ? 1 : 0) ? 1 : 0;
        }
        std::fill_n(rewards.begin() + team * kAgents, kAgents, here > 0 ? right / here : 0);
      }
      show();
      agent.Close({rewards, discounts, {}, {}});
    }
    (void)agent.Update({rows, {}, active, {}}, update / 60.0);
  }
  EXPECT_GT(Ask(agent, {1}).probabilities[1], .95);
  EXPECT_GT(Ask(agent, {-1}).probabilities[0], .95);
}

}  // namespace
}  // namespace dynamix
