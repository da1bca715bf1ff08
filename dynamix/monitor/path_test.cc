// What the sources say about a path, against what the path is: its rate by a token bucket, its
// round-trip time by a relay that delays packets. Physical, on a machine that has other things to
// do: each is tried a few times, and one good measurement proves the point.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "dynamix/host/testing/relay_process.h"
#include "dynamix/host/testing/test_network.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/monitor/testing/cannot_load_ebpf.h"

namespace dynamix {
namespace {

using test::Receiver;
using test::Sender;

constexpr int kAttempts = 20;

// Best tier in a parameter, so that the same path judges every source that knows rates.
class PathTest : public testing::TestWithParam<NetworkTier> {
 protected:
  void SetUp() override {
    if (auto reason = test::CannotRelay()) GTEST_SKIP() << *reason;
    if (GetParam() != NetworkTier::kEbpf) return;
    if (auto reason = test::CannotLoadEbpf()) GTEST_SKIP() << *reason;
  }

  static Monitor Watch(const Cgroup& cgroup) {
    MonitorOptions options;
    options.target.cgroup = cgroup.path();
    options.best_tier = GetParam();
    Monitor monitor = Monitor::Start(options);
    EXPECT_EQ(monitor.tier(), GetParam());
    return monitor;
  }

  // A window in the middle of a transfer.
  static MonitorWindow Measure(const test::NetworkNamespace& from, const test::NetworkNamespace& to,
                               double seconds) {
    const Cgroup job = test::MakeCgroup();
    const Receiver receiver({&to, nullptr});
    Sender sender({&from, &job}, "10.77.0.2", receiver.port());
    Monitor monitor = Watch(job);
    sender.Open();
    sender.StartSending(seconds);
    usleep(static_cast<useconds_t>(seconds * 0.4e6));  // the start is not the steady state
    monitor.ReadWindow();
    usleep(static_cast<useconds_t>(seconds * 0.5e6));
    const MonitorWindow window = monitor.ReadWindow();
    sender.Finish();
    return window;
  }
};

bool Within(double share, double value, double truth) {
  return std::abs(value - truth) <= share * truth;
}

TEST_P(PathTest, RateIsWithinFivePerCentOfTheTokenBucket) {
  const test::TwoHosts hosts = test::Cabled();
  hosts.left.Run("tc qdisc add dev wire root tbf rate 40mbit burst 8k latency 50ms");
  // The bucket counts Ethernet frames of 1514 bytes, of which TCP with timestamps carries 1448.
  const double payload_mbps = 40 * 1448.0 / 1514.0;
  MonitorWindow window;
  double sent_mbps = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    window = Measure(hosts.left, hosts.right, 1.5);
    sent_mbps = window.network.bytes_sent * 8e-6 / window.seconds;
    if (Within(0.05, window.network.delivery_mbps, payload_mbps) &&
        Within(0.05, sent_mbps, payload_mbps))
      break;
  }
  EXPECT_NEAR(window.network.delivery_mbps, payload_mbps, 0.05 * payload_mbps);
  EXPECT_NEAR(sent_mbps, payload_mbps, 0.05 * payload_mbps);
}

TEST_P(PathTest, MinimumRttIsWithinTwoPerCentOfTheDelay) {
  constexpr double kRttUs = 50000;
  const test::DelayedHosts hosts{std::chrono::microseconds(25000)};
  NetworkWindow window;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    window = Measure(hosts.left(), hosts.right(), 0.8).network;
    if (Within(0.02, window.minimum_rtt_us, kRttUs)) break;
  }
  EXPECT_NEAR(window.minimum_rtt_us, kRttUs, 0.02 * kRttUs);
  EXPECT_GE(window.smoothed_rtt_us, window.minimum_rtt_us * 0.99);
  EXPECT_GT(window.congestion_window, 1);
}

INSTANTIATE_TEST_SUITE_P(Sources, PathTest,
                         testing::Values(NetworkTier::kEbpf, NetworkTier::kInetDiag),
                         [](const auto& tier) {
                           return tier.param == NetworkTier::kEbpf ? "Ebpf" : "InetDiag";
                         });

}  // namespace
}  // namespace dynamix
