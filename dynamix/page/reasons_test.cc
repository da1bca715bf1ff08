#include "dynamix/page/reasons.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "dynamix/core/encoder.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/ppo/learned_policy.h"
#include "dynamix/ppo/testing/small_policy.h"

namespace dynamix {
namespace {

class ReasonsOfSet : public testing::TestWithParam<ActionKind> {};
INSTANTIATE_TEST_SUITE_P(Sets, ReasonsOfSet,
                         testing::Values(ActionKind::kRelative, ActionKind::kWide,
                                         ActionKind::kAnchored, ActionKind::kGuided));

TEST_P(ReasonsOfSet, AnInfluenceIsWhatTheDecisionLosesWithoutTheFeature) {
  PolicyModel model = SmallPolicy({8}, 2);
  model.actions.kind = GetParam();
  Rng rng(3);
  const Round round = SampleRound(rng, 4);
  States states = Encoder().Encode(round);
  LearnedPolicy policy(model, Choice::kGreedy);
  const auto log_factor = [&] {
    return std::log2(*std::get<Actions>(policy.Decide(round, states, rng)).team_factor);
  };

  RecordedRound recorded;
  recorded.team_state = states.team;
  recorded.actions = Actions{};
  std::vector<Reason> reasons = Reasons("learned", &model).Of(recorded, nullptr, 4);
  if (GetParam() == ActionKind::kGuided) {
    EXPECT_EQ(reasons.front().feature, "soonest batch");
    reasons.erase(reasons.begin());
  }
  ASSERT_EQ(reasons.size(), 4u);
  const double now = log_factor();
  const std::vector<Column> columns = TeamColumns();
  for (const Reason& reason : reasons) {
    std::size_t f = 0;
    while (columns[f].name != reason.feature) ++f;
    states.team[f] = kMissing;  // the policy reads it as its mean
    EXPECT_NEAR(reason.influence, now - log_factor(), 1e-5) << reason.feature;
    states.team[f] = recorded.team_state[f];
  }
}

TEST(ReasonsTest, ARuleIsExplainedByWhatItReads) {
  RecordedRound round;
  round.batches = {32, 16};
  round.training.noise_scale = 500;
  round.workers = {Report{.iterations = 10, .local_batch = 32, .compute_ms = 16},
                   Report{.iterations = 10, .local_batch = 16, .compute_ms = 32}, Report{}};
  Reasons reasons("noise_scale:step=2", nullptr);
  EXPECT_EQ(reasons.Title(), "what the rule read");
  std::map<std::string, double> values;
  for (const Reason& reason : reasons.Of(round, nullptr, 3)) {
    values[reason.feature] = reason.value;
    EXPECT_TRUE(IsMissing(reason.influence)) << "how much it mattered is not known";
  }
  const std::map<std::string, double> expected = {{"noise scale", 500},
                                                  {"global batch", 48},
                                                  {"fastest worker, samples/s", 2000},
                                                  {"slowest worker, samples/s", 500}};
  EXPECT_EQ(values, expected);
  EXPECT_EQ(Reasons("guarded:steps:noise_scale", nullptr).Of(round, nullptr, 3).size(), 4u);
  EXPECT_TRUE(Reasons("static:64", nullptr).Of(round, nullptr, 3).empty());
}

TEST(ReasonsTest, OfAPolicyThatIsGoneOnlyChangesAreTold) {
  RecordedRound before, now;
  before.team_state.assign(TeamWidth(), 0);
  now.team_state = before.team_state;
  now.team_state[2] = static_cast<float>(GlobalFeatures()[2].high);
  Reasons gone("gone.safetensors", nullptr);
  EXPECT_EQ(gone.Title(), "what changed");
  const std::vector<Reason> reasons = gone.Of(now, &before, 5);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].feature, GlobalFeatures()[2].name);
  EXPECT_TRUE(gone.Of(now, nullptr, 5).empty()) << "the first round";
}

}  // namespace
}  // namespace dynamix
