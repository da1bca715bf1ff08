#include "dynamix/simulator/cluster.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

CostOptions PlainCost() {
  CostOptions cost;
  cost.sample_ms = 2;
  cost.gradient_bytes = 1e6;
  cost.overlap = 0;
  cost.saturation = {.ramp_batch = 0, .spill_batch = 1e9, .spill = 0};
  cost.memory_fixed_bytes = 0;
  cost.memory_per_sample_bytes = 1e6;
  return cost;
}

Scenario PlainScenario() {
  Scenario scenario;
  Node node;
  node.speed = 1;
  node.overhead_ms = 10;
  node.bandwidth_mbps = 100;
  node.latency_ms = 0.5;
  node.jitter = 0;
  scenario.nodes = {{1, node}};
  return scenario;
}

TEST(ClusterTest, ComputeIsOverheadPlusSamplesOverSpeed) {
  Scenario scenario = PlainScenario();
  scenario.nodes.push_back(scenario.nodes[0]);
  scenario.nodes[1].node.speed = 4;
  const Cluster cluster(scenario, PlainCost(), 2);
  EXPECT_DOUBLE_EQ(cluster.ComputeMs(0, 32), 10 + 64);
  EXPECT_DOUBLE_EQ(cluster.ComputeMs(1, 32), 10 + 16);
}

TEST(ClusterTest, ThroughputRisesThenFallsWithTheBatch) {
  CostOptions cost = PlainCost();
  cost.saturation = {.ramp_batch = 16, .spill_batch = 128, .spill = 1};
  const Cluster cluster(PlainScenario(), cost, 1);
  const auto throughput = [&](double batch) { return batch / (cluster.ComputeMs(0, batch) - 10); };
  EXPECT_LT(throughput(4), throughput(32));
  EXPECT_GT(throughput(48), throughput(512));
}

TEST(ClusterTest, ARingMovesTwiceItsShareThroughTheSlowestLink) {
  Scenario scenario = PlainScenario();
  scenario.nodes[0].count = 3;
  scenario.nodes.push_back(scenario.nodes[0]);
  scenario.nodes[1].count = 1;
  scenario.nodes[1].node.bandwidth_mbps = 40;
  const Cluster cluster(scenario, PlainCost(), 4);
  // 2 * 3/4 * 8 Mbit / 40 Mbit/s = 300 ms, and 6 hops of 0.5 ms.
  EXPECT_NEAR(cluster.CommunicationMs(), 303, 1e-9);
}

TEST(ClusterTest, AParameterServerIsLimitedByItsOwnLink) {
  Scenario scenario = PlainScenario();
  scenario.communication = Communication::kParameterServer;
  scenario.server_mbps = 100;
  // 4 workers share 100 Mbit/s: 2 * 8 Mbit * 4 / 100 = 640 ms, and 2 hops.
  EXPECT_NEAR(Cluster(scenario, PlainCost(), 4).CommunicationMs(), 641, 1e-9);
  scenario.server_mbps = 1000;
  EXPECT_NEAR(Cluster(scenario, PlainCost(), 4).CommunicationMs(), 161, 1e-9);
}

TEST(ClusterTest, OneWorkerDoesNotCommunicate) {
  EXPECT_EQ(Cluster(PlainScenario(), PlainCost(), 1).CommunicationMs(), 0);
}

TEST(ClusterTest, LossLowersTheRateAsMathisSays) {
  Scenario scenario = PlainScenario();
  scenario.nodes[0].node.bandwidth_mbps = 10000;
  scenario.nodes[0].node.loss = 0.01;
  const Cluster cluster(scenario, PlainCost(), 2);
  // MSS / RTT * sqrt(1.5 / p) = 1460 * 8 bit / 1 ms * 12.247 = 143.05 Mbit/s.
  EXPECT_NEAR(cluster.CommunicationMs(), 8000 / 143.05 + 1, 0.05);
}

TEST(ClusterTest, CommunicationHidesBehindBackwardUpToTheOverlap) {
  CostOptions cost = PlainCost();
  cost.overlap = 0.5;
  const Cluster cluster(PlainScenario(), cost, 2);
  const double exchange = cluster.CommunicationMs();  // 81 ms
  EXPECT_NEAR(cluster.ExposedMs(1000), 0.5 * exchange, 1e-9);
  EXPECT_NEAR(cluster.ExposedMs(30), exchange - 20, 1e-9);
}

TEST(ClusterTest, WithoutJitterAWindowIsTheSlowestWorkerPlusCommunication) {
  Scenario scenario = PlainScenario();
  scenario.nodes.push_back(scenario.nodes[0]);
  scenario.nodes[1].node.speed = 2;
  Cluster cluster(scenario, PlainCost(), 2);
  cluster.Restart(Rng(1));
  const WindowTiming& timing = cluster.RunWindow({20, 20}, 10);
  EXPECT_NEAR(timing.compute_ms[0], 50, 1e-3);
  EXPECT_NEAR(timing.compute_ms[1], 30, 1e-3);
  EXPECT_NEAR(timing.slowest_ms, 50, 1e-3);
  EXPECT_NEAR(timing.seconds, 1e-2 * timing.iteration_ms, 1e-6);
  const Report report = cluster.MeasureWorker(1);
  EXPECT_NEAR(report.wait_ms, 20, 1e-3);
  EXPECT_NEAR(report.compute_ms + report.wait_ms + report.communication_ms, report.iteration_ms,
              1e-6);
}

TEST(ClusterTest, JitterMakesTheIterationTheMeanOfTheSlowestNotTheSlowestMean) {
  Scenario scenario = PlainScenario();
  scenario.nodes[0].node.jitter = 0.1;
  Cluster cluster(scenario, PlainCost(), 8);
  cluster.Restart(Rng(3));
  double slowest = 0, mean = 0;
  constexpr int kWindows = 200;
  for (int window = 0; window < kWindows; ++window) {
    const WindowTiming& timing = cluster.RunWindow(std::vector<int>(8, 45), 20);
    slowest += timing.slowest_ms / kWindows;
    for (const double compute_ms : timing.compute_ms) mean += compute_ms / (8 * kWindows);
  }
  EXPECT_NEAR(mean, 100, 0.5);
  // The largest of 8 standard normals is 1.4236 on average; exp(0.1 z - 0.005) at that: about 1.15.
  EXPECT_NEAR(slowest, 115.0, 1.0);
}

TEST(ClusterTest, ASlowdownBeginsInTheMiddleOfAWindowAndEnds) {
  Cluster cluster(PlainScenario(), PlainCost(), 1);
  // 10 iterations of 50 ms; the second half of the first window is 4 times slower in compute.
  cluster.SetEvents({{EventKind::kSlowdown, 0, 0.25, 0.25 + 5 * 0.17, 4}});
  EXPECT_NEAR(cluster.RunWindow({20}, 10).seconds, 5 * 0.05 + 5 * 0.17, 1e-6);
  cluster.BeginWindow(0.25 + 5 * 0.17);
  EXPECT_NEAR(cluster.RunWindow({20}, 10).seconds, 0.5, 1e-6);
}

TEST(ClusterTest, OverlappingSlowdownsMultiplyAndVanish) {
  Cluster cluster(PlainScenario(), PlainCost(), 1);
  cluster.SetEvents({{EventKind::kSlowdown, 0, 1, 3, 3}, {EventKind::kSlowdown, 0, 2, 4, 2}});
  const auto compute_at = [&](double seconds) {
    cluster.BeginWindow(seconds);
    return cluster.ComputeMs(0, 10);
  };
  EXPECT_DOUBLE_EQ(compute_at(0.5), 30);
  EXPECT_DOUBLE_EQ(compute_at(1.5), 70);
  EXPECT_DOUBLE_EQ(compute_at(2.5), 130);
  EXPECT_DOUBLE_EQ(compute_at(3.5), 50);
  EXPECT_DOUBLE_EQ(compute_at(4.5), 30);
}

TEST(ClusterTest, BandwidthDropsAndLossBurstsSlowTheExchange) {
  Cluster cluster(PlainScenario(), PlainCost(), 2);
  cluster.SetEvents({{EventKind::kBandwidth, 1, 1, 2, 0.1}, {EventKind::kLoss, 0, 3, 4, 0.25}});
  EXPECT_NEAR(cluster.CommunicationMs(), 81, 1e-9);
  cluster.BeginWindow(1.5);
  EXPECT_NEAR(cluster.CommunicationMs(), 801, 1e-9);
  cluster.BeginWindow(3.5);
  EXPECT_GT(cluster.CommunicationMs(), 200);
  cluster.BeginWindow(5);
  EXPECT_NEAR(cluster.CommunicationMs(), 81, 1e-9);
}

TEST(ClusterTest, WorkersLeaveAndComeBackBetweenWindows) {
  Cluster cluster(PlainScenario(), PlainCost(), 3);
  cluster.SetEvents({{EventKind::kLeave, 1, 1, 2, 1}});
  EXPECT_EQ(cluster.present_count(), 3);
  cluster.BeginWindow(1.2);
  EXPECT_FALSE(cluster.present(1));
  EXPECT_EQ(cluster.RunWindow({10, 10, 10}, 5).compute_ms[1], 0);
  cluster.BeginWindow(2.2);
  EXPECT_EQ(cluster.present_count(), 3);
}

TEST(ClusterTest, SomebodyAlwaysStays) {
  Cluster cluster(PlainScenario(), PlainCost(), 2);
  cluster.SetEvents({{EventKind::kLeave, 0, 0, 9, 1}, {EventKind::kLeave, 1, 1, 9, 1}});
  EXPECT_EQ(cluster.present_count(), 1);
  cluster.BeginWindow(2);
  EXPECT_EQ(cluster.present_count(), 1);
  EXPECT_TRUE(cluster.present(1));
}

TEST(ClusterTest, BatchesOverTheMemoryRunInMicroBatches) {
  Scenario scenario = PlainScenario();
  scenario.nodes[0].node.memory_gb = 0.032;  // 32 samples
  CostOptions cost = PlainCost();
  cost.saturation.ramp_batch = 16;
  const Cluster cluster(scenario, cost, 1);
  EXPECT_EQ(cluster.MemoryBatch(0), 32);
  // 32 + 32 + 16 samples, each pass with the ramp's fixed cost of 16 samples.
  EXPECT_NEAR(cluster.ComputeMs(0, 80), 10 + 2 * (80 + 3 * 16), 1e-9);
}

TEST(ClusterTest, BalancedBatchesFinishTogether) {
  Scenario scenario = PlainScenario();
  for (const double speed : {2.0, 4.0}) {
    scenario.nodes.push_back(scenario.nodes[0]);
    scenario.nodes.back().node.speed = speed;
  }
  const Cluster cluster(scenario, PlainCost(), 3);
  const std::vector<BatchBounds> bounds(3, {.min = 1, .max = 1000});
  const std::vector<double> batches = cluster.Balance(140, bounds);
  EXPECT_NEAR(batches[0], 20, 1);
  EXPECT_NEAR(batches[0] + batches[1] + batches[2], 140, 1e-6);
  EXPECT_NEAR(cluster.ComputeMs(0, batches[0]), cluster.ComputeMs(2, batches[2]), 1);
}

TEST(ClusterTest, ContentionShowsInPressureOrThrottlingAfterALag) {
  Cluster cluster(PlainScenario(), PlainCost(), 2);
  cluster.SetEvents({{EventKind::kSlowdown, 0, 0, 1000, 4}});
  const auto burden = [](const Report& report) {
    return report.host.cpu_pressure + report.host.cpu_throttled;
  };
  cluster.RunWindow({10, 10}, 20);
  const double first = burden(cluster.MeasureWorker(0));
  for (int window = 0; window < 20; ++window) {
    cluster.RunWindow({10, 10}, 20);
    cluster.MeasureWorker(0);
    cluster.MeasureWorker(1);
  }
  const Report slowed = cluster.MeasureWorker(0), quiet = cluster.MeasureWorker(1);
  EXPECT_GT(burden(slowed), 1.5 * first);
  EXPECT_GT(burden(slowed), 4 * burden(quiet));
}

TEST(ClusterTest, LossShowsInRetransmissionsAndNoneWithoutASource) {
  Scenario scenario = PlainScenario();
  scenario.nodes[0].node.loss = 0.05;
  Cluster cluster(scenario, PlainCost(), 2);
  cluster.RunWindow({10, 10}, 20);
  EXPECT_NEAR(cluster.MeasureWorker(0).network.retransmission_ratio, 0.05, 0.02);
  scenario.network_tier = NetworkTier::kNone;
  Cluster blind(scenario, PlainCost(), 2);
  blind.RunWindow({10, 10}, 20);
  EXPECT_TRUE(IsMissing(blind.MeasureWorker(0).network.retransmission_ratio));
  EXPECT_TRUE(IsMissing(blind.MeasureWorker(0).network.delivery_mbps));
}

TEST(ClusterTest, MeasuringDoesNotChangeWhatHappens) {
  Cluster a(PlainScenario(), PlainCost(), 2), b(PlainScenario(), PlainCost(), 2);
  for (Cluster* cluster : {&a, &b}) cluster->Restart(Rng(4));
  for (int window = 0; window < 3; ++window) {
    a.RunWindow({10, 10}, 20);
    a.MeasureWorker(0);
    EXPECT_EQ(a.RunWindow({10, 12}, 20).seconds,
              (b.RunWindow({10, 10}, 20), b.RunWindow({10, 12}, 20).seconds));
  }
}

}  // namespace
}  // namespace dynamix
