#include "dynamix/core/action.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dynamix/core/encoder.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

std::vector<ActionOptions> AllOptions() {
  std::vector<ActionOptions> all;
  for (auto kind : {ActionKind::kRelative, ActionKind::kAdditive, ActionKind::kWide,
                    ActionKind::kAnchored, ActionKind::kGuided})
    for (auto base : {LocalBase::kShare, LocalBase::kCurrent})
      for (int levels = 1; levels <= 3; ++levels)
        all.push_back({kind, base, (levels & 1) != 0, (levels & 2) != 0});
  return all;
}

States Sharing(std::vector<double> shares) {
  States states;
  states.shares = std::move(shares);
  return states;
}

Actions Hold(int workers) { return {kHold, std::vector<int>(workers, kHold)}; }

// Two workers, each at this batch.
Round PairOf(int batch, double base_batch) {
  Rng rng(5);
  Round round = SampleRound(rng, 2);
  for (RoundEntry& entry : round.entries) {
    entry.batch = batch;
    entry.active = true;
  }
  round.base_batch = base_batch;
  return round;
}

TEST(ActionTest, SetsAreTheStatedOnes) {
  EXPECT_DOUBLE_EQ(AdjustLocal(ActionKind::kRelative, 0, 90), 60);
  EXPECT_DOUBLE_EQ(AdjustGlobal(ActionKind::kRelative, 3, PairOf(40, 8), {}), 90);
  EXPECT_DOUBLE_EQ(AdjustGlobal(ActionKind::kWide, 4, PairOf(40, 8), {}), 240);
  EXPECT_DOUBLE_EQ(AdjustLocal(ActionKind::kWide, 4, 80), 120);
  EXPECT_DOUBLE_EQ(AdjustLocal(ActionKind::kRelative, kHold, 77), 77);
  EXPECT_DOUBLE_EQ(AdjustLocal(ActionKind::kAdditive, 0, 90), -10);
  EXPECT_DOUBLE_EQ(AdjustLocal(ActionKind::kAdditive, 3, 80), 105);
  EXPECT_DOUBLE_EQ(AdjustGlobal(ActionKind::kAdditive, 4, PairOf(400, 8), {}), 1000);
  EXPECT_EQ(LocalActionName(ActionKind::kRelative, 4), "x1.5");
  EXPECT_EQ(TeamActionName(ActionKind::kWide, 0), "/3");
  EXPECT_EQ(TeamActionName(ActionKind::kAdditive, 1), "-25");
  EXPECT_EQ(LocalActionName(ActionKind::kAdditive, kHold), "hold");
}

TEST(ActionTest, AnAnchoredActionGoesAQuarterOfTheWay) {
  const auto adjusted = [](int action, const Round& round) {
    return AdjustGlobal(ActionKind::kAnchored, action, round, {});
  };
  EXPECT_DOUBLE_EQ(adjusted(2, PairOf(128, 256)), 256) << "there already";
  EXPECT_DOUBLE_EQ(adjusted(4, PairOf(128, 256)), 512) << "16 = 2^4: one octave a round";
  EXPECT_DOUBLE_EQ(adjusted(0, PairOf(128, 256)), 128);
  EXPECT_DOUBLE_EQ(adjusted(2, PairOf(2048, 256)), 2048) << "from 4,096 to 256";
  Round unnamed = PairOf(2048, kMissing);
  for (RoundEntry& entry : unnamed.entries) entry.start_batch = 128;
  EXPECT_DOUBLE_EQ(adjusted(2, unnamed), 2048) << "the start stands in for the base";
  const std::array<float, kActionCount> torn = {0, 0.5, 0, 0.5, 0};
  EXPECT_NEAR(*MeanTeamFactor(ActionKind::kAnchored, torn, PairOf(128, 256), {}), 1, 1e-12);
}

TEST(ActionTest, AGuidedActionGoesThreeQuartersOfTheWay) {
  const Round round = PairOf(128, 16);  // 256 in all
  const Landmarks landmarks{.base = 16, .goodput = 7, .soonest = 4096};
  const auto adjusted = [&](int action) {
    return AdjustGlobal(ActionKind::kGuided, action, round, landmarks);
  };
  EXPECT_DOUBLE_EQ(adjusted(1), 2048) << "3 of 4 octaves";
  EXPECT_NEAR(adjusted(0), 2048 / std::exp2(0.75), 1e-9);
  EXPECT_NEAR(adjusted(3), 2048 * std::exp2(0.75), 1e-9);
  EXPECT_DOUBLE_EQ(adjusted(kHold), 256);
  EXPECT_DOUBLE_EQ(adjusted(4), 32) << "from 256 towards the base batch";
  EXPECT_DOUBLE_EQ(AdjustGlobal(ActionKind::kGuided, 1, round, {}), 256) << "no landmark, no way";
  EXPECT_EQ(TeamActionName(ActionKind::kGuided, 4), "to base");
}

TEST(ActionTest, OptionsSurviveTheirText) {
  for (const ActionOptions& options : AllOptions()) {
    const ActionOptions parsed = ParseActionOptions(Format(options));
    EXPECT_EQ(Format(parsed), Format(options));
  }
  EXPECT_EQ(Format(ActionOptions{}), "wide,share,team+local");
  EXPECT_THROW(ParseActionOptions("relative,share"), InputError);
}

TEST(ActionTest, NothingEverLeavesTheBounds) {
  Rng rng(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int workers = 1 + static_cast<int>(rng.Below(9));
    Round round = SampleRound(rng, workers);
    for (RoundEntry& entry : round.entries) {
      entry.bounds.min = 1 + static_cast<int>(rng.Below(64));
      entry.bounds.max = entry.bounds.min + 16 + static_cast<int>(rng.Below(400));
      entry.bounds.granularity = 1 + static_cast<int>(rng.Below(8));
      entry.bounds.dead_band = rng.Uniform(0, 0.2);
      entry.active = rng.Uniform() < 0.8;
    }
    Encoder encoder;
    const States states = encoder.Encode(round);
    const ActionOptions options = AllOptions()[rng.Below(AllOptions().size())];
    Decisions decisions;
    if (rng.Uniform() < 0.5) {
      Actions actions{static_cast<int>(rng.Below(kActionCount)), {}};
      for (int i = 0; i < workers; ++i) actions.local.push_back(static_cast<int>(rng.Below(5)));
      decisions = actions;
    } else {
      const double wild[] = {kMissing, -5, 0, 1e300, HUGE_VAL, -HUGE_VAL, 77.3};
      Sizes sizes;
      for (int i = 0; i < workers; ++i) sizes.local.push_back(wild[rng.Below(7)]);
      decisions = sizes;
    }
    const std::vector<int> sizes = Apply(round, states, decisions, options);
    for (int i = 0; i < workers; ++i) {
      const RoundEntry& entry = round.entries[i];
      if (!entry.active) {
        EXPECT_EQ(sizes[i], entry.batch);
        continue;
      }
      EXPECT_GE(sizes[i], entry.bounds.min);
      EXPECT_LE(sizes[i], entry.bounds.max);
      EXPECT_EQ(sizes[i] % entry.bounds.granularity, 0);
    }
  }
}

TEST(ActionTest, HoldingOnTheShareBaseBalances) {
  Rng rng(2);
  Round round = SampleRound(rng, 3);
  for (RoundEntry& entry : round.entries) entry.batch = 100;
  const std::vector<int> sizes = Apply(round, Sharing({0.5, 0.3, 0.2}), Hold(3), ActionOptions{});
  EXPECT_EQ(sizes, (std::vector<int>{150, 90, 60}));
}

TEST(ActionTest, HoldingOnTheCurrentBaseChangesNothing) {
  Rng rng(3);
  const Round round = SampleRound(rng, 4);
  const std::vector<int> sizes = Apply(round, Sharing({0.25, 0.25, 0.25, 0.25}), Hold(4),
                                       {ActionKind::kAdditive, LocalBase::kCurrent, false, true});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sizes[i], round.entries[i].batch);
}

TEST(ActionTest, ATeamActionScalesTheGlobalBatchAndALocalOneMovesShares) {
  Rng rng(4);
  Round round = SampleRound(rng, 2);
  for (RoundEntry& entry : round.entries) entry.batch = 100;
  Actions actions = Hold(2);
  actions.team = 4;
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, {}), (std::vector<int>{300, 300}));
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, {.kind = ActionKind::kRelative}),
            (std::vector<int>{150, 150}));
  actions = Hold(2);
  actions.local[1] = 3;
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, {}), (std::vector<int>{94, 106}));
  actions.local[0] = 3;
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, {}), (std::vector<int>{100, 100}));
  const ActionOptions alone{.base = LocalBase::kCurrent, .team = false};
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, alone), (std::vector<int>{113, 113}));
}

TEST(ActionTest, ATeamTornBetweenTwoActionsMovesBetweenThem) {
  const std::array<float, kActionCount> torn = {0, 0, 0.5, 0.5, 0}, sure = {0, 0, 0, 0, 1};
  EXPECT_NEAR(*MeanTeamFactor(ActionKind::kWide, torn, PairOf(128, 256), {}), std::sqrt(1.25),
              1e-6);
  EXPECT_NEAR(*MeanTeamFactor(ActionKind::kWide, sure, PairOf(128, 256), {}), 3, 1e-6);
  EXPECT_FALSE(MeanTeamFactor(ActionKind::kAdditive, sure, PairOf(128, 256), {}));
  Rng rng(4);
  Round round = SampleRound(rng, 2);
  for (RoundEntry& entry : round.entries) entry.batch = 100;
  Actions actions = Hold(2);
  actions.team_factor = 1.2;
  EXPECT_EQ(Apply(round, Sharing({0.5, 0.5}), actions, {}), (std::vector<int>{120, 120}));
}

TEST(ActionTest, AJobOpensWithItsBaseBatchWhereActionsNamePlaces) {
  const Round round = PairOf(400, 64);
  for (const ActionOptions& options : AllOptions()) {
    const bool places =
        options.kind == ActionKind::kGuided || options.kind == ActionKind::kAnchored;
    const double opening = OpeningBatch(round, options);
    EXPECT_EQ(IsMissing(opening) ? 0 : opening, places && options.team ? 64 : 0) << Format(options);
  }
}

TEST(ActionTest, AnOpeningIsSharedOutAsTheStartWas) {
  Round round = PairOf(300, 64);
  round.entries[1].batch = 100;
  EXPECT_EQ(Open(round, 64), (std::vector<int>{48, 16}));
  EXPECT_EQ(Open(round, 400), (std::vector<int>{300, 100})) << "the start itself";
  EXPECT_EQ(Open(round, kMissing), (std::vector<int>{300, 100}));
  EXPECT_EQ(Open(round, 1e30),
            (std::vector<int>{round.entries[0].bounds.max, round.entries[1].bounds.max}));
  round.entries[1].bounds.granularity = 32;
  EXPECT_EQ(Open(round, 400), (std::vector<int>{300, 100}))
      << "legal or not: nobody asked for more";
  EXPECT_EQ(Open(round, 200), (std::vector<int>{150, 64}));
  round.entries[1].bounds.granularity = 1;
  round.entries[0].active = false;
  EXPECT_EQ(Open(round, 64), (std::vector<int>{300, 64})) << "by those who are there";
}

TEST(ActionTest, MasksForbidWhatCannotMove) {
  Rng rng(5);
  Round round = SampleRound(rng, 2);
  for (RoundEntry& entry : round.entries) entry.batch = entry.bounds.max;
  EXPECT_EQ(TeamMask(round, {}), (ActionMask{true, true, true, false, false}));
  EXPECT_EQ(LocalMask(round.entries[0], {}), (ActionMask{true, true, true, false, false}));
  round.entries[0].batch = 100;
  EXPECT_EQ(TeamMask(round, {}), (ActionMask{true, true, true, true, true}));
  round.entries[1].report.reset();
  EXPECT_EQ(LocalMask(round.entries[1], {}), (ActionMask{false, false, true, false, false}));
}

}  // namespace
}  // namespace dynamix
