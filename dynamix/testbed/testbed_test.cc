// The emulated network against what the file asks for, and what a testbed leaves behind: nothing.
#include "dynamix/testbed/testbed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "dynamix/host/testing/test_network.h"
#include "dynamix/host/text_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using test::Receiver;
using test::Sender;
using test::Transfer;
using testing::Contains;
using testing::HasSubstr;

constexpr std::uint64_t kMegabyte = 1 << 20;
constexpr int kAttempts = 20;  // of what a busy machine may spoil

class EmulatedNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
    if (auto reason = CannotMakeTaps()) GTEST_SKIP() << *reason;
  }
  static EmulatedNetwork Make(const std::vector<Node>& nodes, bool lossy = false) {
    return std::move(EmulatedNetwork::Create(nodes, lossy)).value();
  }
};

// A connection between two nodes.
class Connection {
 public:
  Connection(const EmulatedNetwork& network, int from, int to)
      : receiver_({.space = &network.host(to)}),
        sender_({.space = &network.host(from)}, EmulatedNetwork::Address(to), receiver_.port()) {
    sender_.Open();
  }
  Transfer Send(std::uint64_t bytes) { return sender_.Send(bytes); }
  // A busy machine makes a transfer slower: one that is fast enough proves the point.
  bool IsFaster(double mbps, std::uint64_t bytes) {
    for (int attempt = 0; attempt < kAttempts; ++attempt)
      if (Mbps(bytes) > mbps) return true;
    return false;
  }
  double Mbps(std::uint64_t bytes) {
    const auto start = std::chrono::steady_clock::now();
    Send(bytes);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return static_cast<double>(bytes) * 8e-6 / took.count();
  }

 private:
  Receiver receiver_;
  Sender sender_;
};

TEST_F(EmulatedNetworkTest, ALinkCarriesItsBandwidthAndNoMoreAlsoAfterAChange) {
  const EmulatedNetwork network =
      Make({{.bandwidth_mbps = 20}, {.bandwidth_mbps = 100}, {.bandwidth_mbps = 100}});
  Connection sent(network, 0, 1), received(network, 2, 0), fast(network, 1, 2);
  EXPECT_LT(sent.Mbps(kMegabyte), 21) << "what node 0 sends is limited";
  EXPECT_LT(received.Mbps(kMegabyte), 21) << "and what it gets";
  EXPECT_TRUE(fast.IsFaster(25, kMegabyte)) << "and nobody else";
  ASSERT_TRUE(network.SetBandwidth(0, 5).ok());
  EXPECT_LT(sent.Mbps(kMegabyte / 2), 5.5);
  ASSERT_TRUE(network.SetBandwidth(0, 20).ok());
  EXPECT_TRUE(sent.IsFaster(7, kMegabyte / 2));
}

TEST_F(EmulatedNetworkTest, LossAtANodeShowsAsRetransmissionsOfItsPeersAndEnds) {
  const EmulatedNetwork network =
      Make({{.bandwidth_mbps = 100, .loss = 0.03}, {.bandwidth_mbps = 100}}, /*lossy=*/true);
  Connection lossy(network, 1, 0), clean(network, 0, 1);
  // Retransmitted of those sent. A busy machine acknowledges late, so that some are sent again
  // though nothing was lost: the least of a few transfers is the network's.
  const auto lost = [](Connection& connection, double enough) {
    double least = 1;
    for (int attempt = 0; attempt < kAttempts && least > enough; ++attempt) {
      const TcpSample before = connection.Send(1).sender;
      const TcpSample after = connection.Send(4 * kMegabyte).sender;
      least = std::min(
          least, static_cast<double>(after.segments_retransmitted - before.segments_retransmitted) /
                     static_cast<double>(after.segments_sent - before.segments_sent));
    }
    return least;
  };
  EXPECT_NEAR(lost(lossy, 0.045), 0.03, 0.015);
  EXPECT_LT(lost(clean, 0.003), 0.003) << "acknowledgements only";
  ASSERT_TRUE(network.SetLoss(0, 0).ok());
  EXPECT_LT(lost(lossy, 0.003), 0.003);
}

TEST_F(EmulatedNetworkTest, LatencyIsThatOfBothWays) {
  const EmulatedNetwork network = Make({{.latency_ms = 20}, {.latency_ms = 5}, {}});
  Connection far(network, 0, 1), near(network, 2, 1);
  const auto least_ms = [](Connection& connection, double enough) {
    double least = 1e9;
    for (int attempt = 0; attempt < kAttempts && least > enough; ++attempt)
      least = std::min(least, 1e-3 * connection.Send(kMegabyte / 4).sender.minimum_rtt_us);
    return least;
  };
  const double far_ms = least_ms(far, 30), near_ms = least_ms(near, 10);
  EXPECT_GE(far_ms, 25);
  EXPECT_LT(far_ms, 30);
  EXPECT_GE(near_ms, 5);
  EXPECT_LT(near_ms, 10);
}

class TestbedTest : public EmulatedNetworkTest {
 protected:
  static std::string Folder(pid_t owner) { return JobCgroup("testbed-" + std::to_string(owner)); }
  static TestbedOptions TwoNodes() { return {.nodes = {{.speed = 1}, {.speed = 3}}}; }
};

TEST_F(TestbedTest, TwoSideBySideDoNotMeetAndLeaveNothing) {
  pid_t owner = 0;
  {
    test::Child other({}, [&](test::Channel& test) {
      const Testbed testbed(TwoNodes());
      test.Send(getpid());
      test.Receive<bool>();
    });
    owner = other.channel().Receive<pid_t>();
    {
      const Testbed testbed(TwoNodes());
      EXPECT_EQ(testbed.interface(), "wire");
      EXPECT_EQ(testbed.address(), "10.77.0.1");
      EXPECT_TRUE(fs::exists(Folder(getpid()) + "/rank-1"));
      EXPECT_TRUE(fs::exists(Folder(owner) + "/rank-1"));
      test::Child rank({}, [&](test::Channel& test) {
        test.Send(testbed.Enter(1));
        test.Receive<bool>();
      });
      EXPECT_TRUE(rank.channel().Receive<bool>());
      EXPECT_THAT(ProcessesIn(Folder(getpid()) + "/rank-1"), Contains(rank.pid()));
    }
    EXPECT_FALSE(fs::exists(Folder(getpid())));
    other.channel().Send(true);
    EXPECT_TRUE(other.Ended());
  }
  EXPECT_FALSE(fs::exists(Folder(owner)));
}

TEST_F(TestbedTest, WhatAKilledOneLeftIsRemovedAndWhatLivesStays) {
  test::Child alive({}, [&](test::Channel& test) {
    const Testbed testbed(TwoNodes());
    test.Send(true);
    test.Receive<bool>();
  });
  alive.channel().Receive<bool>();
  test::Child killed({}, [&](test::Channel& test) {
    const Testbed testbed(TwoNodes());
    test.Send(true);
    test.Receive<bool>();
  });
  const pid_t owner = killed.pid();
  killed.channel().Receive<bool>();
  killed.Kill();
  RemoveLeftovers();
  EXPECT_FALSE(fs::exists(Folder(owner)));
  EXPECT_TRUE(fs::exists(Folder(alive.pid()) + "/rank-0"));
  alive.channel().Send(true);
  EXPECT_TRUE(alive.Ended());
}

TEST_F(TestbedTest, EventsHappenAtTheirTimesOfTheJobsClock) {
  TestbedOptions options;
  options.nodes = {{.bandwidth_mbps = 400}, {.bandwidth_mbps = 400}};
  options.events = {{EventKind::kBandwidth, 0, 100, 200, 0.01}};
  const Testbed testbed(options);
  JobClock clock = std::move(JobClock::Open(testbed.clock_path())).value();
  const auto rate = [&] {
    test::Child rank({}, [&](test::Channel& test) {
      if (!testbed.Enter(0)) _exit(5);
      test.Send(std::system("tc qdisc show dev wire | grep -q 'rate 4Mbit'"));
    });
    return rank.channel().Receive<int>();
  };
  EXPECT_NE(rate(), 0) << "not yet";
  clock.Set(100.5);
  const auto until = [&](bool dropped) {
    for (int i = 0; i < 1000 && (rate() == 0) != dropped; ++i) usleep(50000);
    return (rate() == 0) == dropped;
  };
  EXPECT_TRUE(until(true));
  clock.Set(200.5);
  EXPECT_TRUE(until(false));
}

TEST_F(TestbedTest, QuotasShareTheProcessorsInProportionToSpeedAndFollowSlowdowns) {
  TestbedOptions options = TwoNodes();
  options.quota_cpus = 2;
  options.events = {{EventKind::kSlowdown, 0, 10, 20, 2}};
  const Testbed testbed(options);
  const std::string slow = FindCgroups(Folder(getpid()) + "/rank-0").cpu;
  const auto quota = [&] {
    return std::stoi(ReadTextFile(slow + "/cpu.cfs_quota_us")
                         .value_or(ReadTextFile(slow + "/cpu.max").value_or("0")));
  };
  EXPECT_EQ(quota(), 50000) << "a quarter of 2 CPUs, per 100 ms";
  EXPECT_THAT(testbed.notes(), Contains(HasSubstr("CPU quota")));
  JobClock clock = std::move(JobClock::Open(testbed.clock_path())).value();
  clock.Set(10);
  for (int i = 0; i < 1000 && quota() != 25000; ++i) usleep(50000);
  EXPECT_EQ(quota(), 25000);
}

TEST(TestbedNotesTest, WorkersOfAnElasticJobAreAwayDuringTheirEvents) {
  TestbedOptions options;
  options.nodes = {{}, {}, {}};
  options.network = false;
  options.elastic = true;
  options.events = {{EventKind::kLeave, 1, 10, 20, 1}, {EventKind::kLeave, 2, 0, 5, 1}};
  const Testbed testbed(options);
  EXPECT_THAT(testbed.notes(), Contains(HasSubstr("workers that leave are killed")));
  EXPECT_FALSE(testbed.Away(2)) << "the job has not begun";
  JobClock clock = std::move(JobClock::Open(testbed.clock_path())).value();
  const auto away = [&](double seconds) {
    clock.Set(seconds);
    return std::vector<bool>{testbed.Away(0), testbed.Away(1), testbed.Away(2)};
  };
  EXPECT_THAT(away(0.1), testing::ElementsAre(false, false, true));
  EXPECT_THAT(away(5), testing::ElementsAre(false, false, false));
  EXPECT_THAT(away(10), testing::ElementsAre(false, true, false));
  EXPECT_THAT(away(19.9), testing::ElementsAre(false, true, false));
  EXPECT_THAT(away(20), testing::ElementsAre(false, false, false));
}

TEST(TestbedNotesTest, SayWhatIsNotEmulated) {
  TestbedOptions options;
  options.nodes = {{.bandwidth_mbps = 25000, .latency_ms = 0.05}, {}};
  options.network = false;
  options.events = {{EventKind::kLeave, 0, 1, 2, 1}, {EventKind::kLoss, 1, 1, 2, 0.1}};
  const Testbed testbed(options);
  EXPECT_THAT(testbed.notes(), Contains(HasSubstr("bandwidth, latency and loss")));
  EXPECT_THAT(testbed.notes(), Contains(HasSubstr("leave and join")));
  EXPECT_THAT(testbed.notes(), Contains(HasSubstr("bandwidth and loss events")));
  EXPECT_EQ(testbed.address(), "127.0.0.1");
  EXPECT_EQ(testbed.interface(), "");
}

}  // namespace
}  // namespace dynamix
