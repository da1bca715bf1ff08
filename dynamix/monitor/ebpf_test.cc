// The eBPF source against TCP_INFO, the kernel's own word, on real sockets in network namespaces.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "dynamix/host/capabilities.h"
#include "dynamix/host/testing/test_network.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/monitor/testing/cannot_load_ebpf.h"

namespace dynamix {
namespace {

using test::Cabled;
using test::Child;
using test::MakeCgroup;
using test::Receiver;
using test::Sender;
using test::Transfer;
using test::TwoHosts;

constexpr std::uint64_t kMegabyte = 1 << 20;

class EbpfTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = test::CannotLoadEbpf()) GTEST_SKIP() << *reason;
  }

  static Monitor Watch(const Cgroup& cgroup) {
    MonitorOptions options;
    options.target.cgroup = cgroup.path();
    options.say = [](const std::string& sentence) { EXPECT_EQ(sentence, "network metrics: eBPF"); };
    return Monitor::Start(options);
  }

  static int ProgramsOn(const Cgroup& cgroup) {
    const FileDescriptor folder(open(cgroup.path().c_str(), O_RDONLY | O_CLOEXEC));
    __u32 programs[8], count = 8;
    EXPECT_EQ(bpf_prog_query(folder.get(), BPF_CGROUP_SOCK_OPS, 0, nullptr, programs, &count), 0);
    return static_cast<int>(count);
  }
};

// At the receiver: what the sender's own egress drops, its TCP does not call a retransmission.
void DropAtIngress(const test::NetworkNamespace& host, const std::string& which,
                   const std::string& tables = "iptables") {
  host.Run("for tables in " + tables + " " + tables +
           "-legacy; do $tables -A INPUT -i wire -p tcp " + which +
           " -j DROP 2>/dev/null && exit; done; exit 1");
}

void ExpectEqual(const NetworkWindow& window, const TcpSample& sample) {
  EXPECT_EQ(window.bytes_sent, sample.bytes_acked);
  EXPECT_EQ(window.bytes_received, sample.bytes_received);
  EXPECT_EQ(window.segments_sent, sample.segments_sent);
  EXPECT_EQ(window.segments_retransmitted, sample.segments_retransmitted);
}

TEST_F(EbpfTest, EqualsTcpInfoToTheByteAndTheRetransmissionUnderLoss) {
  const TwoHosts hosts = Cabled();
  hosts.left.Run("ip link set wire gso_max_segs 1");  // a drop is one segment
  DropAtIngress(hosts.right, "-m statistic --mode nth --every 100 --packet 0");
  const Cgroup sending = MakeCgroup(), receiving = MakeCgroup();
  Monitor sent = Watch(sending), received = Watch(receiving);
  const Receiver receiver({&hosts.right, &receiving});
  Sender sender({&hosts.left, &sending}, "10.77.0.2", receiver.port());
  sender.Open();
  const Transfer transfer = sender.Send(8 * kMegabyte);

  const MonitorWindow window = sent.ReadWindow();
  ExpectEqual(window.network, transfer.sender);
  EXPECT_GT(transfer.sender.segments_retransmitted, 30U) << "the loss was not injected";
  EXPECT_EQ(received.ReadWindow().network.bytes_received, transfer.receiver.bytes_received);
  const NetworkReport report = window.NetworkPart();
  EXPECT_EQ(report.tier, NetworkTier::kEbpf);
  // One in a hundred, and whatever a busy machine's timers add.
  EXPECT_GT(report.retransmission_ratio, 0.005);
  EXPECT_LT(report.retransmission_ratio, 0.1);
  EXPECT_EQ(window.network.open_sockets, 1);

  const TcpSample last = sender.Close();
  EXPECT_EQ(sent.ReadWindow().network.bytes_sent, last.bytes_acked - transfer.sender.bytes_acked);
}

TEST_F(EbpfTest, TwoJobsInTwoCgroupsDoNotLeakIntoEachOther) {
  const test::NetworkNamespace host;
  const Cgroup first = MakeCgroup(), second = MakeCgroup();
  Monitor first_monitor = Watch(first), second_monitor = Watch(second);
  const Receiver receiver({&host, nullptr}), other_receiver({&host, nullptr});
  Sender one({&host, &first}, "127.0.0.1", receiver.port());
  Sender other({&host, &second}, "127.0.0.1", other_receiver.port());
  one.Open();
  other.Open();
  const Transfer small = one.Send(3 * kMegabyte), large = other.Send(7 * kMegabyte);
  ExpectEqual(first_monitor.ReadWindow().network, small.sender);
  ExpectEqual(second_monitor.ReadWindow().network, large.sender);
  EXPECT_EQ(first_monitor.ReadWindow().network.bytes_sent, 0) << "a second window starts at zero";
}

TEST_F(EbpfTest, EqualsTcpInfoOverIpv6UnderLoss) {
  if (auto reason = test::CannotUseIpv6()) GTEST_SKIP() << *reason;
  const TwoHosts hosts = Cabled();
  hosts.left.Run("ip link set wire gso_max_segs 1 && ip addr add fd77::1/64 dev wire nodad");
  hosts.right.Run("ip addr add fd77::2/64 dev wire nodad");
  DropAtIngress(hosts.right, "-m statistic --mode nth --every 100 --packet 0", "ip6tables");
  const Cgroup sending = MakeCgroup(), receiving = MakeCgroup();
  Monitor sent = Watch(sending), received = Watch(receiving);
  const Receiver receiver({&hosts.right, &receiving}, "::");
  Sender sender({&hosts.left, &sending}, "fd77::2", receiver.port());
  sender.Open();
  const Transfer transfer = sender.Send(4 * kMegabyte);
  ExpectEqual(sent.ReadWindow().network, transfer.sender);
  EXPECT_GT(transfer.sender.segments_retransmitted, 15U) << "the loss was not injected";
  EXPECT_EQ(received.ReadWindow().network.bytes_received, transfer.receiver.bytes_received);
}

TEST_F(EbpfTest, CountsIpv4OverAnIpv6SocketOnce) {
  if (auto reason = test::CannotUseIpv6()) GTEST_SKIP() << *reason;
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  Monitor monitor = Watch(job);
  const Receiver receiver({&host, nullptr}, "::");
  Sender sender({&host, &job}, "::ffff:127.0.0.1", receiver.port());
  sender.Open();
  const Transfer transfer = sender.Send(kMegabyte);
  const MonitorWindow window = monitor.ReadWindow();
  ExpectEqual(window.network, transfer.sender);
  EXPECT_EQ(window.network.open_sockets, 1);
}

TEST_F(EbpfTest, CountsASocketThatOpensAndClosesInsideTheWindow) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  Monitor monitor = Watch(job);
  const Receiver receiver({&host, nullptr});
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  sender.Open();
  sender.Send(kMegabyte);
  const TcpSample last = sender.Close();
  const MonitorWindow window = monitor.ReadWindow();
  ExpectEqual(window.network, last);
  EXPECT_EQ(window.network.open_sockets, 0);
}

TEST_F(EbpfTest, CountsSocketsOpenedBeforeItFromThereOn) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  const Receiver receiver({&host, nullptr});
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  sender.Open();
  const Transfer before = sender.Send(kMegabyte);
  Monitor monitor = Watch(job);
  const Transfer after = sender.Send(2 * kMegabyte);
  const NetworkWindow window = monitor.ReadWindow().network;
  EXPECT_EQ(window.bytes_sent, after.sender.bytes_acked - before.sender.bytes_acked);
  EXPECT_EQ(window.open_sockets, 1);
  EXPECT_TRUE(IsMissing(window.timeouts)) << "nobody hears of them";
  sender.Close();
  double timeouts = kMissing;
  for (int i = 0; i < 600 && IsMissing(timeouts); ++i) {
    usleep(10000);  // the kernel's, to let go of the socket
    timeouts = monitor.ReadWindow().network.timeouts;
  }
  EXPECT_EQ(timeouts, 0) << "no such socket is left";
}

TEST_F(EbpfTest, FindsTheOwnCgroupOfAProcess) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  const Receiver receiver({&host, nullptr});
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  MonitorOptions options;
  options.target.pid = sender.pid();
  Monitor monitor = Monitor::Start(options);
  EXPECT_EQ(monitor.tier(), NetworkTier::kEbpf);
  sender.Open();
  ExpectEqual(monitor.ReadWindow().network, TcpSample{.bytes_acked = 1});  // the SYN
  const Transfer transfer = sender.Send(kMegabyte);
  EXPECT_EQ(monitor.ReadWindow().network.bytes_sent, transfer.sender.bytes_acked - 1);
}

TEST_F(EbpfTest, KilledMonitorLeavesTheJobAloneAndNothingAttached) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  Child monitor({}, [&](test::Channel& test) {
    Monitor watching = Watch(job);
    test.Send(watching.tier());
    test.Receive<bool>();  // until killed
  });
  EXPECT_EQ(monitor.channel().Receive<NetworkTier>(), NetworkTier::kEbpf);
  EXPECT_EQ(ProgramsOn(job), 1);
  const Receiver receiver({&host, nullptr});
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  sender.Open();
  sender.Send(kMegabyte);
  sender.StartSending(0.3);
  monitor.Kill();
  EXPECT_GT(sender.Finish().sender.bytes_acked, kMegabyte) << "the job was disturbed";
  // The kernel detaches after the last reference is gone, a moment after the process.
  for (int i = 0; i < 6000 && ProgramsOn(job) > 0; ++i) usleep(10000);
  EXPECT_EQ(ProgramsOn(job), 0);
  EXPECT_GT(sender.Send(kMegabyte).sender.bytes_acked, 2 * kMegabyte);
}

TEST_F(EbpfTest, CountsTimeouts) {
  const TwoHosts hosts = Cabled();
  const Cgroup job = MakeCgroup();
  Monitor monitor = Watch(job);
  const Receiver receiver({&hosts.right, nullptr});
  Sender sender({&hosts.left, &job}, "10.77.0.2", receiver.port());
  sender.Open();
  sender.Send(kMegabyte);
  monitor.ReadWindow();
  sender.StartSending(100);  // until the test ends
  DropAtIngress(hosts.right, "");
  double timeouts = 0;
  for (int i = 0; i < 600 && timeouts == 0; ++i) {
    usleep(100000);  // the smallest timeout is 0.2 s
    timeouts += monitor.ReadWindow().network.timeouts;
  }
  EXPECT_GE(timeouts, 1);
}

TEST_F(EbpfTest, WithoutTheIteratorsSocketsAreExactAtTheirEndAndItSaysSo) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  const Receiver receiver({&host, nullptr});
  Child monitor({}, [&](test::Channel& test) {
    // Iterators are tracing programs: these two capabilities do not allow them.
    __user_cap_header_struct header{};
    header.version = _LINUX_CAPABILITY_VERSION_3;
    __user_cap_data_struct data[2] = {};
    data[0].effective = data[0].permitted = 1U << CAP_NET_ADMIN;
    data[1].effective = data[1].permitted = 1U << (CAP_BPF - 32);
    EXPECT_EQ(syscall(SYS_capset, &header, data), 0);
    MonitorOptions options;
    options.target.cgroup = job.path();
    int sentences = 0;
    options.say = [&](const std::string& sentence) {
      sentences += sentence.find("CAP_PERFMON") != std::string::npos ? 1 : 0;
    };
    Monitor watching = Monitor::Start(options);
    test.Send(watching.tier());
    test.Receive<bool>();
    EXPECT_EQ(sentences, 1);
    test.Send(watching.ReadWindow().network);
  });
  EXPECT_EQ(monitor.channel().Receive<NetworkTier>(), NetworkTier::kEbpf);
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  sender.Open();
  sender.Send(kMegabyte);
  const TcpSample last = sender.Close();
  monitor.channel().Send(true);
  ExpectEqual(monitor.channel().Receive<NetworkWindow>(), last);
  EXPECT_TRUE(monitor.Ended());
}

TEST_F(EbpfTest, GoesOnExactlyWithoutCapabilities) {
  const test::NetworkNamespace host;
  const Cgroup job = MakeCgroup();
  const Receiver receiver({&host, nullptr});
  Child monitor({}, [&](test::Channel& test) {
    Monitor watching = Watch(job);
    EXPECT_TRUE(DropCapabilities().ok());
    // Of this thread alone, past the C library, which would ask all threads.
    EXPECT_NE(syscall(SYS_setuid, 1), 0) << "changing identity needs a capability";
    test.Send(watching.tier());
    test.Receive<bool>();
    test.Send(watching.ReadWindow().network);
  });
  EXPECT_EQ(monitor.channel().Receive<NetworkTier>(), NetworkTier::kEbpf);
  Sender sender({&host, &job}, "127.0.0.1", receiver.port());
  sender.Open();
  const Transfer transfer = sender.Send(kMegabyte);
  monitor.channel().Send(true);
  ExpectEqual(monitor.channel().Receive<NetworkWindow>(), transfer.sender);
  EXPECT_TRUE(monitor.Ended());
}

}  // namespace
}  // namespace dynamix
