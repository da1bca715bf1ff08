#include "dynamix/ppo/learned_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/core/encoder.h"
#include "dynamix/core/testing/policy_conformance.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/ppo/round_batch.h"
#include "dynamix/ppo/testing/small_policy.h"

namespace dynamix {
namespace {

// Random weights scatter the actions; a policy worth testing for calm has a preference for holding.
PolicyModel HoldingPolicy(ActionKind kind) {
  PolicyModel model = SmallPolicy({8, 8}, 7);
  model.actions.kind = kind;
  for (ActorCritic* head : {&*model.local, &*model.team}) {
    const Layer& last = head->network.policy().back();
    for (int i = 0; i < last.in * last.out; ++i)
      head->network.parameters()[last.weights + i] *= .01f;
    head->network.parameters()[last.bias + kHold] += 3;
  }
  return model;
}

PolicyCase Greedy(std::string name, ActionKind kind) {
  return {
      .name = std::move(name),
      .make =
          [kind] { return std::make_unique<LearnedPolicy>(HoldingPolicy(kind), Choice::kGreedy); },
      .actions = {.kind = kind}};
}

INSTANTIATE_TEST_SUITE_P(Learned, PolicyConformance,
                         testing::Values(Greedy("learned_greedy", ActionKind::kWide),
                                         Greedy("learned_guided", ActionKind::kGuided)),
                         [](const auto& instance) { return instance.param.name; });

struct Seen {
  Round round;
  States states;
};

Seen MakeRound(int workers) {
  Rng rng(3);
  Seen seen;
  seen.round = SampleRound(rng, workers);
  seen.states = Encoder().Encode(seen.round);
  return seen;
}

Actions Decide(LearnedPolicy& policy, const Seen& seen, std::uint64_t seed) {
  Rng rng(seed);
  return std::get<Actions>(policy.Decide(seen.round, seen.states, rng));
}

TEST(LearnedPolicyTest, LateAndInactiveWorkersHold) {
  Seen seen = MakeRound(40);
  LearnedPolicy policy(SmallPolicy({8}, 1), Choice::kSample);
  bool moved = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    seen.round.entries[3].active = false;
    seen.round.entries[7].report.reset();
    seen.states = Encoder().Encode(seen.round);
    const Actions actions = Decide(policy, seen, seed);
    EXPECT_EQ(actions.local[3], kHold);
    EXPECT_EQ(actions.local[7], kHold);
    moved = moved || actions.local[0] != kHold;
  }
  EXPECT_TRUE(moved);
}

TEST(LearnedPolicyTest, TakesOnlyLegalActions) {
  Seen seen = MakeRound(30);
  for (RoundEntry& entry : seen.round.entries) entry.batch = entry.bounds.max;
  LearnedPolicy policy(SmallPolicy({8}, 1), Choice::kSample);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Actions actions = Decide(policy, seen, seed);
    for (const int action : actions.local)
      EXPECT_TRUE(LocalMask(seen.round.entries[0], {})[action]);
    EXPECT_TRUE(TeamMask(seen.round, {})[actions.team]);
  }
}

TEST(LearnedPolicyTest, AWeightThatIsNoNumberMakesTheRoundHold) {
  const Seen seen = MakeRound(8);
  for (const bool local : {true, false}) {
    PolicyModel model = SmallPolicy({8}, 1);
    (local ? *model.local : *model.team).network.parameters()[0] = std::nanf("");
    LearnedPolicy policy(model, Choice::kGreedy);
    const Actions actions = Decide(policy, seen, 1);
    EXPECT_EQ(actions.team, kHold);
    EXPECT_EQ(actions.local, std::vector<int>(8, kHold));
  }
}

TEST(LearnedPolicyTest, AHeadThatIsSwitchedOffHolds) {
  const Seen seen = MakeRound(8);
  PolicyModel model = SmallPolicy({8}, 1);
  model.actions.team = false;
  model.team.reset();
  LearnedPolicy policy(model, Choice::kSample);
  for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(Decide(policy, seen, seed).team, kHold);
}

// Whose team takes the actions with these probabilities, whatever it sees.
PolicyModel CertainPolicy(std::span<const double> probabilities) {
  PolicyModel model = SmallPolicy({8}, 1);
  const Layer& last = model.team->network.policy().back();
  const std::span<float> weights = model.team->network.parameters();
  std::ranges::fill(weights.subspan(last.weights, last.in * last.out), 0.f);
  for (int a = 0; a < kActionCount; ++a)
    weights[last.bias + a] = static_cast<float>(std::log(probabilities[a]));
  return model;
}

TEST(LearnedPolicyTest, InUseTheTeamGoesTheMeanOfItsActions) {
  const Seen seen = MakeRound(8);
  const PolicyModel model = CertainPolicy(std::array{.1, .2, .3, .3, .1});
  LearnedPolicy policy(model, Choice::kGreedy), learning(model, Choice::kSample);
  // / 3 and x 3 cancel, and so do two thirds of x 1.25.
  EXPECT_NEAR(Decide(policy, seen, 1).team_factor.value(), std::pow(1.25, .1), 1e-6);
  EXPECT_FALSE(Decide(learning, seen, 1).team_factor.has_value()) << "one action, as it is learned";
}

TEST(LearnedPolicyTest, GreedyIsTheSameForEveryGenerator) {
  const Seen seen = MakeRound(33);
  LearnedPolicy policy(SmallPolicy({8}, 1), Choice::kGreedy);
  EXPECT_EQ(Decide(policy, seen, 1).local, Decide(policy, seen, 2).local);
}

TEST(LearnedPolicyTest, AWorkersActionDoesNotDependOnTheNumberOfRows) {
  const Seen seen = MakeRound(70);
  LearnedPolicy policy(SmallPolicy({8}, 1), Choice::kGreedy);
  const std::vector<int> all = Decide(policy, seen, 1).local;
  Seen fewer = seen;
  for (int i = 0; i < 70; i += 2) fewer.round.entries[i].active = false;
  const std::vector<int> odd = Decide(policy, fewer, 1).local;
  for (int i = 1; i < 70; i += 2) EXPECT_EQ(odd[i], all[i]);
}

TEST(RoundBatchTest, PutsEveryEnvironmentInItsRows) {
  const Seen small = MakeRound(2), large = MakeRound(4);
  RoundBatch batch(2, 4, {});
  batch.Set(0, large.round, large.states);
  batch.Set(0, small.round, small.states);  // the former round leaves no trace
  batch.Set(1, large.round, large.states);
  const Observation local = batch.Local(), team = batch.Team();
  const std::vector<std::uint8_t> active(local.active.begin(), local.active.end());
  EXPECT_EQ(active, (std::vector<std::uint8_t>{1, 1, 0, 0, 1, 1, 1, 1}));
  const std::size_t width = LocalWidth();
  for (std::size_t row = 4; row < 8; ++row) {
    for (std::size_t c = 0; c < width; ++c) {
      const float want = large.states.local[(row - 4) * width + c];
      const float got = local.actor_rows[row * width + c];
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)));
    }
  }
  for (std::size_t c = 0; c < width; ++c) EXPECT_TRUE(std::isnan(local.actor_rows[3 * width + c]));
  EXPECT_EQ(CriticRows(team).size(), 2u * TeamWidth());
  EXPECT_EQ(CriticRows(local).size(), 8 * width);
}

TEST(RoundBatchTest, TooManyWorkersAreOurBug) {
  const Seen seen = MakeRound(5);
  RoundBatch batch(1, 4, {});
  EXPECT_THROW(batch.Set(0, seen.round, seen.states), CheckFailure);
}

}  // namespace
}  // namespace dynamix
