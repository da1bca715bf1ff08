#include "dynamix/simulator/simulated_cluster.h"

#include <gtest/gtest.h>

#include "dynamix/simulator/engine.h"
#include "dynamix/simulator/testing/environment_conformance.h"

namespace dynamix {
namespace {

Workload SmallJob() {
  Workload workload;
  workload.optimizer.planned_samples = 128 * 20 * 100;
  workload.target.run_share = 0.6;
  return workload;
}

MiniaturePools Pools() {
  static const auto gaussian = MakeGaussianPool(1, 2000, 200);
  return {.fashion = nullptr, .gaussian = gaussian};
}

Workload TinyMiniature() {
  Workload workload = SmallJob();
  MiniatureOptions options;
  options.family = MiniatureFamily::kTeacher;
  options.network.inputs = 16;
  options.network.hidden = 8;
  options.network.classes = 4;
  options.training_samples = 1000;
  options.held_out_samples = 100;
  workload.convergence = options;
  return workload;
}

Scenario Eventful() {
  Scenario scenario;
  scenario.start_batch = 32;
  scenario.nodes.resize(2);
  scenario.nodes[0].node.speed = 3;
  scenario.late_reports = 0.1;
  scenario.events = {
      {.kind = EventKind::kSlowdown, .at = 0.01, .duration = 0.02, .every = 0.05, .factor = 4},
      {.kind = EventKind::kLeave, .target = EventTarget::kSlowest, .at = 0.03, .duration = 0.05},
      {.kind = EventKind::kJoin, .target = EventTarget::kSpread, .share = 0.1, .at = 0.04},
      {.kind = EventKind::kBandwidth, .at = 0.02, .duration = 0.1, .factor = 0.2},
      {.kind = EventKind::kLoss, .at = 0.05, .duration = 0.1, .factor = 0.01}};
  return scenario;
}

std::unique_ptr<SimulatedCluster> Make(const Scenario& scenario, const Workload& workload,
                                       int workers, std::uint64_t seed = 1) {
  return std::make_unique<SimulatedCluster>(
      JobSpec{.scenario = scenario, .workload = workload, .workers = workers, .seed = seed},
      MakeConvergence(workload, Pools(), seed));
}

TEST(SimulatedClusterTest, IsAnEnvironmentOnBothEngines) {
  CheckEnvironment([] { return Make(Scenario{}, SmallJob(), 4); });
  CheckEnvironment([] { return Make(Eventful(), SmallJob(), 5); });
  CheckEnvironment([] { return Make(Eventful(), TinyMiniature(), 3); });
  CheckEnvironment([] { return Make(Scenario{}, SmallJob(), 1); });
}

TEST(SimulatedClusterTest, StartsAtTheBaseBatchInEqualParts) {
  const Round round = Make(Scenario{}, SmallJob(), 4)->Reset();
  for (const RoundEntry& entry : round.entries) EXPECT_EQ(entry.batch, 32);
}

TEST(SimulatedClusterTest, AdvanceHasTheSameTruthAsStep) {
  const auto a = Make(Eventful(), SmallJob(), 4), b = Make(Eventful(), SmallJob(), 4);
  Round round = a->Reset();
  b->Reset();
  for (int window = 0; window < 30; ++window) {
    const std::vector<int> sizes = a->BalancedSizes(100 + window);
    a->Step(sizes);
    b->Advance(sizes);
    EXPECT_EQ(a->truth().seconds, b->truth().seconds);
    EXPECT_EQ(a->truth().held_out_loss, b->truth().held_out_loss);
  }
}

TEST(SimulatedClusterTest, ACloneContinuesIdentically) {
  const auto original = Make(Eventful(), SmallJob(), 4);
  original->Reset();
  original->Advance({20, 30, 40, 50});
  const auto copy = original->Clone();
  for (int window = 0; window < 10; ++window) {
    conformance::ExpectSameRounds(original->Step({30, 30, 30, 30}), copy->Step({30, 30, 30, 30}));
    EXPECT_EQ(original->truth().held_out_loss, copy->truth().held_out_loss);
  }
}

TEST(SimulatedClusterTest, OtherSeedsGiveOtherNoise) {
  EXPECT_NE(Make(Scenario{}, SmallJob(), 4, 1)->Reset().seconds,
            Make(Scenario{}, SmallJob(), 4, 2)->Reset().seconds);
}

TEST(SimulatedClusterTest, BalancedSizesRemoveTheWait) {
  Scenario scenario;
  scenario.nodes.resize(2);
  scenario.nodes[0].node.speed = 4;
  for (NodeGroup& group : scenario.nodes) group.node.jitter = 0;
  const auto cluster = Make(scenario, SmallJob(), 4);
  const Round equal = cluster->Reset();
  const Round balanced = cluster->Step(cluster->BalancedSizes(128));
  EXPECT_GT(equal.entries[0].report->wait_ms, 0.3 * equal.entries[0].report->iteration_ms);
  EXPECT_LT(balanced.entries[0].report->wait_ms, 0.06 * balanced.entries[0].report->iteration_ms);
  EXPECT_NEAR(balanced.GlobalBatch(), 128, 2);
}

TEST(SimulatedClusterTest, LeavingAndJoiningShowInTheRoundBefore) {
  Scenario scenario;
  scenario.clock = ScenarioClock::kSeconds;
  scenario.time_budget = 1000;
  scenario.events = {{.kind = EventKind::kLeave,
                      .target = EventTarget::kSlowest,
                      .share = 0.25,
                      .at = 5,
                      .duration = 5}};
  const auto cluster = Make(scenario, SmallJob(), 4);
  Round round = cluster->Reset();
  bool left = false, back = false;
  for (int window = 0; window < 60; ++window) {
    const bool active = round.entries[0].active;
    const double begin = cluster->truth().seconds;
    EXPECT_EQ(active, begin < 5 || begin >= 10) << begin;
    round = cluster->Step({32, 32, 32, 32});
    EXPECT_EQ(round.entries[0].report.has_value(), active);
    left = left || !active;
    back = back || (left && active);
  }
  EXPECT_TRUE(left);
  EXPECT_TRUE(back);
}

TEST(SimulatedClusterTest, RunningOutOfMemoryLowersTheBoundOnce) {
  Workload workload = SmallJob();
  workload.cost.memory_fixed_bytes = 0;
  workload.cost.memory_per_sample_bytes = 1e7;
  Scenario scenario;
  scenario.nodes[0].node.memory_gb = 1;  // 100 samples
  scenario.nodes[0].node.jitter = 0;
  const auto cluster = Make(scenario, workload, 2);
  const Round before = cluster->Reset();
  EXPECT_EQ(before.entries[0].bounds.max, 1024) << "not known before it happens";
  const Round first = cluster->Step({400, 400});
  EXPECT_EQ(first.entries[0].bounds.highest(), 100);
  EXPECT_EQ(first.entries[0].batch, 400);
  const double lost =
      first.seconds - 1e-3 * kWindowIterations * first.entries[0].report->iteration_ms;
  EXPECT_GT(lost, 0.5 * 1e-3 * first.entries[0].report->compute_ms);
  const Round second = cluster->Step({400, 400});
  EXPECT_EQ(second.entries[0].batch, 100);
}

TEST(SimulatedClusterTest, LimitsEndTheJob) {
  const auto cluster = Make(Scenario{}, SmallJob(), 4);
  cluster->Reset();
  const double start = cluster->truth().held_out_loss;
  cluster->set_limits({.target_loss = 0.5 * start, .seconds = 1.5 * cluster->truth().seconds});
  while (!cluster->truth().reached) cluster->Advance({32, 32, 32, 32});
  EXPECT_LE(cluster->truth().held_out_loss, 0.5 * start);
  EXPECT_TRUE(cluster->truth().out_of_time);
}

TEST(SimulatedClusterTest, NominalSecondsAreThoseOfAQuietBalancedRun) {
  Scenario scenario;
  for (NodeGroup& group : scenario.nodes) group.node.jitter = 0;
  const auto cluster = Make(scenario, SmallJob(), 4);
  cluster->Reset();
  while (cluster->samples_seen() < cluster->planned_samples())
    cluster->Advance(cluster->BalancedSizes(128));
  EXPECT_NEAR(cluster->truth().seconds, cluster->nominal_seconds(),
              0.02 * cluster->nominal_seconds());
}

}  // namespace
}  // namespace dynamix
