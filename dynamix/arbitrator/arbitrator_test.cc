#include "dynamix/arbitrator/arbitrator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/arbitrator/testing/fake_job.h"

namespace dynamix {
namespace {

// Wants the team to grow once, then holds.
class GrowOnce : public Policy {
 public:
  std::string_view name() const override { return "grow_once"; }
  Decisions Decide(const Round& round, const States&, Rng&) override {
    Actions actions{round.index == 0 ? 4 : kHold, std::vector<int>(round.entries.size(), kHold)};
    return actions;
  }
  void Reset() override {}
};

TEST(ArbitratorTest, TurnsRoundsIntoBatchesThroughTheWholeLoop) {
  FakeJob job(3, 1e9, 1e9);
  Arbitrator arbitrator({"grow_once", {}, [] { return std::make_unique<GrowOnce>(); }});
  Round round = job.Reset();
  const double before = round.GlobalBatch();
  round = job.Step(arbitrator.Step(round, {}).sizes);
  EXPECT_NEAR(round.GlobalBatch(), 3 * before, 2);
  // Shares are speed-proportional at once: 1, 2 and 3.
  EXPECT_NEAR(round.entries[2].batch / static_cast<double>(round.entries[0].batch), 3, 0.1);
  const double grown = round.GlobalBatch();
  round = job.Step(arbitrator.Step(round, {}).sizes);
  EXPECT_NEAR(round.GlobalBatch(), grown, 2);
  EXPECT_EQ(arbitrator.Step(round, {}).states.workers, 3);
}

class Throws : public GrowOnce {
 public:
  Decisions Decide(const Round&, const States&, Rng&) override {
    throw std::runtime_error("no idea");
  }
};

TEST(ArbitratorTest, APolicyThatFailsInALiveJobCostsAdviceAndIsNamed) {
  FakeJob job(3, 1e9, 1e9);
  Arbitrator arbitrator({"throws", {}, [] { return std::make_unique<Throws>(); }});
  const Round round = job.Reset();
  const Decision decision = arbitrator.Step(round);
  EXPECT_EQ(decision.sizes, Batches(round));
  EXPECT_EQ(decision.failure, "no idea");
  EXPECT_THROW(arbitrator.Step(round, {}), std::runtime_error) << "a simulated job passes it on";
}

TEST(ArbitratorTest, BeforeTheGuardHasMeasuredNobodyChangesAnything) {
  FakeJob job(3, 1e9, 1e9);
  Arbitrator arbitrator({"grow_once", {}, [] { return std::make_unique<GrowOnce>(); }});
  Round round = job.Reset();
  for (RoundEntry& entry : round.entries)
    entry.report->compute_ms = entry.report->iteration_ms = kMissing;
  const Decision decision = arbitrator.Step(round);
  ASSERT_EQ(decision.guard, Guard::State::kMeasures);
  EXPECT_EQ(std::get<Actions>(decision.decisions).team, 4) << "the policy would grow";
  EXPECT_EQ(decision.sizes, Batches(round));
}

// A rate for the window's length, and a discount to the power of it: the return is an integral over
// time, whatever the windows.
TEST(ArbitratorTest, RewardsAndDiscountsCountTheWindowsLength) {
  LearningOptions options;
  options.jobs = options.threads = 1;
  options.max_workers = 3;
  options.objective.team_discount = 0.9;
  Learner learner(MakeLearnerOptions(options, {.steps = 4}, {.steps = 4}, {8}, 1));
  Arbitrator arbitrator(options, learner);
  FakeJob job(3, 1e9, 1e9);
  const Round first = job.Reset();
  arbitrator.Start(0, first);
  Round second = job.Step(arbitrator.Decide().front());
  second.seconds = 6;
  const WindowOutcome outcome{
      .progress_seconds = 9, .time_scale_s = 1.5, .end = StepEnd::kContinues, .lump = 0.25};
  arbitrator.Close({second}, {outcome});
  const Rollout& rollout = learner.team()->rollout();
  const double rate =
      ComputeRewards(second, Batches(first), 9, options.objective.reward).team.total;
  ASSERT_GT(std::abs(rate), 0.01);
  EXPECT_NEAR(rollout.rewards[0], rate * 4 + 0.25, 1e-9);  // 6 s are 4 units
  EXPECT_NEAR(rollout.discounts[0], std::pow(0.9, 4), 1e-12);
}

// Opens with 30 samples, whatever the job says.
class OpensSmall : public GrowOnce {
 public:
  double OpeningBatch(const Round&) const override { return 30; }
};

TEST(ArbitratorTest, OpensAJobAsItsPolicySays) {
  const FakeJob job(3, 1e9, 1e9);
  const Arbitrator holds({"grow_once", {}, [] { return std::make_unique<GrowOnce>(); }});
  EXPECT_EQ(holds.Open(job.Opening()), Batches(job.Opening()));
  const Arbitrator opens({"opens_small", {}, [] { return std::make_unique<OpensSmall>(); }});
  EXPECT_EQ(opens.Open(job.Opening()), (std::vector<int>{10, 10, 10}));
}

// Wants what chance and the number of its decisions say.
class Gambler : public Policy {
 public:
  std::string_view name() const override { return "gambler"; }
  Decisions Decide(const Round& round, const States&, Rng& rng) override {
    ++decided_;
    Sizes sizes;
    for (std::size_t i = 0; i < round.entries.size(); ++i)
      sizes.local.push_back(rng.Uniform(16, 64) + decided_ % 7);
    return sizes;
  }
  void Reset() override { decided_ = 0; }
  void VisitMemory(Memory& memory) override { memory(decided_); }

 private:
  int decided_ = 0;
};

class ArbitratorMemoryTest : public testing::Test {
 protected:
  static PolicySpec Gambling(const std::string& name = "gambler") {
    return {name, {}, [] { return std::make_unique<Gambler>(); }};
  }
  static ArbitratorOptions Guarded() {
    ArbitratorOptions options;
    options.guard = {.rounds = 2, .hold = 3};
    return options;
  }
  // The rounds of a job that the policy slows down now and then, so that the guard has work.
  Round Next(const std::vector<int>& sizes) {
    Round round = job_.Step(sizes);
    for (RoundEntry& entry : round.entries) entry.report->iteration_ms *= 1 + (round.index / 5) % 3;
    return round;
  }
  static std::vector<double> Written(Arbitrator& arbitrator) {
    Memory memory;
    memory(arbitrator);
    return memory.numbers();
  }

  FakeJob job_{3, 64, 1e9};
};

TEST_F(ArbitratorMemoryTest, AJobGoesOnFromItAsIfNeverStopped) {
  Arbitrator whole(Gambling(), Guarded());
  std::vector<Round> rounds = {job_.Reset()};
  std::vector<Decision> decisions;
  std::vector<std::vector<double>> memories;
  for (int i = 0; i < 60; ++i) {
    decisions.push_back(whole.Step(rounds.back()));
    memories.push_back(Written(whole));
    rounds.push_back(Next(decisions.back().sizes));
  }
  EXPECT_GT(whole.guard().fallbacks(), 1);
  for (const int stop : {0, 1, 4, 7, 12, 25, 40}) {
    Arbitrator rest(Gambling(), Guarded());
    Memory memory(memories[stop]);
    memory(rest);
    memory.ExpectEnd();
    for (int i = stop + 1; i < 60; ++i) {
      const Decision decision = rest.Step(rounds[i]);
      ASSERT_EQ(decision.sizes, decisions[i].sizes) << stop << " " << i;
      ASSERT_EQ(decision.guard, decisions[i].guard) << stop << " " << i;
      ASSERT_EQ(decision.rewards.team.total, decisions[i].rewards.team.total) << stop << " " << i;
    }
    EXPECT_EQ(rest.guard().fallbacks(), whole.guard().fallbacks());
  }
}

TEST_F(ArbitratorMemoryTest, DoesNotGrowWithTheJob) {
  Arbitrator arbitrator(Gambling());
  Round round = job_.Reset();
  std::size_t after_ten = 0;
  for (int i = 0; i < 500; ++i) {
    round = Next(arbitrator.Step(round).sizes);
    if (i == 10) after_ten = Written(arbitrator).size();
  }
  EXPECT_LE(Written(arbitrator).size(), after_ten + 20) << "the guard looks at a few rounds";
}

TEST_F(ArbitratorMemoryTest, OfAnotherPolicyOnlyWhatIsKnownOfTheJobIsTaken) {
  Arbitrator first(Gambling()), second(Gambling("another"));
  Round round = job_.Reset();
  for (int i = 0; i < 20; ++i) round = Next(first.Step(round).sizes);
  Memory memory(Written(first));
  memory(second);
  memory.ExpectEnd();
  EXPECT_EQ(second.Step(round).policy, "another");
}

TEST_F(ArbitratorMemoryTest, ANewPolicyIsNotBlamedForTheOldOne) {
  Arbitrator arbitrator(Gambling(), Guarded());
  Round round = job_.Reset();
  Decision decision = arbitrator.Step(round);
  for (int i = 0; i < 60 && decision.guard == Guard::State::kAdvises; ++i) {
    round = Next(decision.sizes);
    decision = arbitrator.Step(round);
  }
  ASSERT_NE(decision.guard, Guard::State::kAdvises) << "the old one has to fail first";
  arbitrator.SetPolicy(Gambling("another"));
  decision = arbitrator.Step(Next(decision.sizes));
  EXPECT_EQ(decision.policy, "another");
  EXPECT_EQ(decision.guard, Guard::State::kAdvises);
}

TEST(ParallelForTest, DoesEveryPieceOnceAndPassesOnAFailure) {
  std::vector<int> done(1000, 0);
  ParallelFor(1000, 4, [&](int i) { ++done[i]; });
  for (int count : done) EXPECT_EQ(count, 1);
  EXPECT_THROW(ParallelFor(100, 4,
                           [](int i) {
                             if (i == 37) throw std::runtime_error("piece 37");
                           }),
               std::runtime_error);
}

}  // namespace
}  // namespace dynamix
