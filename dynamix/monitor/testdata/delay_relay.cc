#include "dynamix/monitor/testdata/delay_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <vector>

namespace dynamix::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Packet {
  Clock::time_point due;
  std::vector<char> bytes;
};

FileDescriptor OpenTunnel(const NetworkNamespace& host, const std::string& address) {
  FileDescriptor tunnel;
  host.Visit([&] {
    FileDescriptor file(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq request{};
    std::strncpy(request.ifr_name, "wire", IFNAMSIZ - 1);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (file.valid() && ioctl(file.get(), TUNSETIFF, &request) == 0) tunnel = std::move(file);
  });
  EXPECT_TRUE(tunnel.valid());
  host.Run("ip addr add " + address + "/24 dev wire && ip link set wire up txqueuelen 10000");
  return tunnel;
}

void TakePackets(int tunnel, std::chrono::microseconds one_way, std::deque<Packet>& queue) {
  char bytes[65536];
  ssize_t got = 0;
  while ((got = read(tunnel, bytes, sizeof bytes)) > 0)
    queue.push_back({Clock::now() + one_way, std::vector<char>(bytes, bytes + got)});
}

void DeliverPackets(int tunnel, std::deque<Packet>& queue) {
  while (!queue.empty() && queue.front().due <= Clock::now()) {
    (void)!write(tunnel, queue.front().bytes.data(), queue.front().bytes.size());
    queue.pop_front();
  }
}

[[noreturn]] void Relay(int left, int right, std::chrono::microseconds one_way) {
  std::deque<Packet> to_left, to_right;
  while (true) {
    auto wake = Clock::now() + std::chrono::milliseconds(100);
    for (const auto* queue : {&to_left, &to_right})
      if (!queue->empty()) wake = std::min(wake, queue->front().due);
    const auto wait =
        std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(wake - Clock::now()));
    const timespec timeout{static_cast<time_t>(wait.count() / 1000000000),
                           static_cast<long>(wait.count() % 1000000000)};
    pollfd files[2] = {{left, POLLIN, 0}, {right, POLLIN, 0}};
    ppoll(files, 2, &timeout, nullptr);
    TakePackets(left, one_way, to_right);
    TakePackets(right, one_way, to_left);
    DeliverPackets(right, to_right);
    DeliverPackets(left, to_left);
  }
}

}  // namespace

std::optional<std::string> CannotRelay() {
  if (auto reason = CannotMakeNamespaces()) return reason;
  const FileDescriptor file(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!file.valid()) return "needs /dev/net/tun, for a path with an exact delay";
  return std::nullopt;
}

DelayedHosts::DelayedHosts(std::chrono::microseconds one_way) {
  FileDescriptor left = OpenTunnel(left_, "10.77.0.1");
  FileDescriptor right = OpenTunnel(right_, "10.77.0.2");
  relay_ = std::make_unique<Child>(Child::Place{},
                                   [&](Channel&) { Relay(left.get(), right.get(), one_way); });
}

}  // namespace dynamix::test
