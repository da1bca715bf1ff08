// Each tier, forced by taking away what the better ones need: identity, capabilities, system calls.
// The measured process is a child; what it measures of itself is compared with its own TCP_INFO.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "dynamix/host/testing/test_network.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/monitor/testing/cannot_load_ebpf.h"

namespace dynamix {
namespace {

using test::Child;

constexpr std::size_t kBytes = 1 << 20;
constexpr unsigned kNobody = 65534;

class TierTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
    host_.emplace();
    cgroup_.emplace(test::MakeCgroup());
  }
  Child::Place Alone() const { return {&*host_, &*cgroup_}; }  // in a cgroup of its own
  Child::Place Shared() const { return {&*host_, nullptr}; }

 private:
  std::optional<test::NetworkNamespace> host_;
  std::optional<Cgroup> cgroup_;
};

struct Outcome {
  NetworkTier tier;
  NetworkWindow window;
  TcpSample sender, receiver;
  int sentences;
  char first_sentence[400];
};

// Runs in the child: watches itself, sends over loopback, and compares.
Outcome WatchItself(MonitorOptions options) {
  Outcome outcome{};
  options.say = [&](const std::string& sentence) {
    if (outcome.sentences++ == 0)
      sentence.copy(outcome.first_sentence, sizeof outcome.first_sentence - 1);
  };
  Monitor monitor = Monitor::Start(options);
  const auto pair = test::LoopbackPair();
  test::Pump(pair, kBytes);
  outcome.sender = test::TcpInfoOf(pair.first.get());
  outcome.receiver = test::TcpInfoOf(pair.second.get());
  outcome.window = monitor.ReadWindow().network;
  outcome.tier = monitor.tier();
  monitor.ReadWindow();
  return outcome;
}

void BecomeNobody() {
  ASSERT_EQ(setgid(kNobody), 0);
  ASSERT_EQ(setuid(kNobody), 0);
}

// From now on the system call fails, or with `argument` only calls with this first argument.
void Forbid(unsigned call, int error_number, int argument = -1) {
  const auto low_word = static_cast<unsigned>(offsetof(seccomp_data, args));
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_word),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(argument), 0,
               static_cast<__u8>(argument < 0 ? 0 : 1)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error_number)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

Outcome InChild(Child::Place place, const std::function<Outcome()>& work) {
  Child child(place, [&](test::Channel& test) { test.Send(work()); });
  const auto outcome = child.channel().Receive<Outcome>();
  EXPECT_TRUE(child.Ended());
  return outcome;
}

// Both ends are the child's own.
void ExpectExact(const Outcome& outcome) {
  EXPECT_EQ(outcome.window.bytes_sent, outcome.sender.bytes_acked + outcome.receiver.bytes_acked);
  EXPECT_EQ(outcome.window.bytes_received, kBytes);
  EXPECT_EQ(outcome.window.segments_sent, outcome.sender.segments_sent);
  EXPECT_EQ(outcome.window.segments_retransmitted, outcome.sender.segments_retransmitted);
  EXPECT_EQ(outcome.window.open_sockets, 2);
  EXPECT_GT(outcome.window.minimum_rtt_us, 0);
  EXPECT_GT(outcome.window.delivery_mbps, 0);
  EXPECT_EQ(outcome.sentences, 1) << outcome.first_sentence;
}

TEST_F(TierTest, RootInACgroupOfItsOwnHasEbpf) {
  if (auto reason = test::CannotLoadEbpf()) GTEST_SKIP() << *reason;
  const Outcome outcome = InChild(Alone(), [] { return WatchItself(MonitorOptions()); });
  EXPECT_EQ(outcome.tier, NetworkTier::kEbpf) << outcome.first_sentence;
  ExpectExact(outcome);
}

TEST_F(TierTest, WithoutACgroupOfItsOwnItIsInetDiag) {
  const Outcome outcome = InChild(Shared(), [] { return WatchItself(MonitorOptions()); });
  EXPECT_EQ(outcome.tier, NetworkTier::kInetDiag) << outcome.first_sentence;
  ExpectExact(outcome);
}

TEST_F(TierTest, NobodyHasInetDiag) {
  const Outcome outcome = InChild(Alone(), [] {
    BecomeNobody();
    return WatchItself(MonitorOptions());
  });
  EXPECT_EQ(outcome.tier, NetworkTier::kInetDiag) << outcome.first_sentence;
  EXPECT_NE(std::string(outcome.first_sentence).find("eBPF: "), std::string::npos);
  ExpectExact(outcome);
}

TEST_F(TierTest, AKernelWithoutBpfHasInetDiag) {
  const Outcome outcome = InChild(Alone(), [] {
    Forbid(SYS_bpf, ENOSYS);
    return WatchItself(MonitorOptions());
  });
  EXPECT_EQ(outcome.tier, NetworkTier::kInetDiag) << outcome.first_sentence;
  ExpectExact(outcome);
}

TEST_F(TierTest, WithoutNetlinkItIsTcpInfo) {
  const Outcome outcome = InChild(Alone(), [] {
    BecomeNobody();
    Forbid(SYS_socket, EPERM, AF_NETLINK);
    return WatchItself(MonitorOptions());
  });
  EXPECT_EQ(outcome.tier, NetworkTier::kOwnSockets) << outcome.first_sentence;
  ExpectExact(outcome);
}

TEST_F(TierTest, NobodyWatchingAnotherUsersProcessHasInterfaceCounters) {
  MonitorOptions options;
  options.target.pid = getpid();
  options.interface = "lo";
  const Outcome outcome = InChild(Alone(), [&] {
    BecomeNobody();
    return WatchItself(options);
  });
  EXPECT_EQ(outcome.tier, NetworkTier::kInterface) << outcome.first_sentence;
  EXPECT_EQ(outcome.sentences, 1);
}

TEST_F(TierTest, InterfaceCountersSeeAtLeastThePayload) {
  MonitorOptions options;
  options.best_tier = NetworkTier::kInterface;
  const Outcome outcome = InChild(Shared(), [&] { return WatchItself(options); });
  EXPECT_EQ(outcome.tier, NetworkTier::kInterface);
  EXPECT_GE(outcome.window.bytes_sent, kBytes);
  EXPECT_LE(outcome.window.bytes_sent, kBytes * 1.3);
  EXPECT_GE(outcome.window.segments_sent, 1);
  EXPECT_TRUE(IsMissing(outcome.window.minimum_rtt_us));
}

TEST_F(TierTest, WithoutAnythingItIsNoneAndSaysSoOnce) {
  MonitorOptions options;
  options.target.pid = 1 << 30;  // no process
  int sentences = 0;
  options.say = [&](const std::string&) { ++sentences; };
  Monitor monitor = Monitor::Start(options);
  EXPECT_EQ(monitor.tier(), NetworkTier::kNone);
  EXPECT_TRUE(IsMissing(monitor.ReadWindow().NetworkPart().bytes_sent));
  EXPECT_EQ(sentences, 1);
}

TEST_F(TierTest, ASourceThatFailsMidRunDegradesAndSaysSoOnce) {
  Child job(Shared(), [](test::Channel& test) { test.Receive<bool>(); });
  MonitorOptions options;
  options.target.pid = job.pid();
  options.best_tier = NetworkTier::kInterface;
  std::vector<std::string> sentences;
  options.say = [&](const std::string& sentence) { sentences.push_back(sentence); };
  Monitor monitor = Monitor::Start(options);
  EXPECT_EQ(monitor.tier(), NetworkTier::kInterface);
  job.Kill();
  for (int i = 0; i < 3; ++i) monitor.ReadWindow();
  EXPECT_EQ(monitor.tier(), NetworkTier::kNone);
  EXPECT_EQ(sentences.size(), 2U);
}

TEST_F(TierTest, AListenerThatThrowsDoesNotReachTheJob) {
  MonitorOptions options;
  options.say = [](const std::string&) { throw std::runtime_error("no"); };
  Monitor monitor = Monitor::Start(options);
  EXPECT_GE(monitor.ReadWindow().seconds, 0);
}

TEST_F(TierTest, InetDiagSeesTheSocketsOfDescendantsAndOfNobodyElse) {
  const test::Receiver receiver(Shared());
  test::Sender stranger(Shared(), "127.0.0.1", receiver.port());
  MonitorOptions options;
  options.best_tier = NetworkTier::kInetDiag;
  struct Sum {
    double sent;
    TcpSample sample;
  };
  Child parent(Shared(), [&](test::Channel& test) {
    Monitor monitor = Monitor::Start(options);
    test.Receive<bool>();
    const test::Receiver own_receiver({nullptr, nullptr});
    test::Sender child({nullptr, nullptr}, "127.0.0.1", own_receiver.port());
    child.Open();
    const test::Transfer transfer = child.Send(kBytes);
    usleep(1100000);  // a new process is looked for once a second
    test.Send(Sum{monitor.ReadWindow().network.bytes_received, transfer.receiver});
  });
  parent.channel().Send(true);
  stranger.Open();
  stranger.Send(2 * kBytes);
  const auto sum = parent.channel().Receive<Sum>();
  EXPECT_GE(sum.sent, sum.sample.bytes_received);
  EXPECT_LE(sum.sent, sum.sample.bytes_received + sizeof(TcpSample));
}

TEST_F(TierTest, InetDiagEqualsTcpInfoOverIpv6) {
  if (auto reason = test::CannotUseIpv6()) GTEST_SKIP() << *reason;
  for (const std::string address : {"::1", "::ffff:127.0.0.1"}) {
    const test::Receiver receiver(Shared(), "::");
    test::Sender sender(Shared(), address, receiver.port());
    sender.Open();
    Child reader(Shared(), [&](test::Channel& test) {
      MonitorOptions options;
      options.target.pid = sender.pid();
      options.best_tier = NetworkTier::kInetDiag;
      Monitor monitor = Monitor::Start(options);
      test.Send(monitor.tier());
      test.Receive<bool>();
      test.Send(monitor.ReadWindow().network);
    });
    EXPECT_EQ(reader.channel().Receive<NetworkTier>(), NetworkTier::kInetDiag);
    const test::Transfer transfer = sender.Send(kBytes);
    reader.channel().Send(true);
    const auto window = reader.channel().Receive<NetworkWindow>();
    EXPECT_EQ(window.bytes_sent, transfer.sender.bytes_acked - 1) << address << ": but the SYN";
    EXPECT_EQ(window.open_sockets, 1) << address;
  }
}

}  // namespace
}  // namespace dynamix
