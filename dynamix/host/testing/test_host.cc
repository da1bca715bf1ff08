#include "dynamix/host/testing/test_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace dynamix::test {
namespace {

constexpr int kPatienceMs = 60000;

std::pair<FileDescriptor, FileDescriptor> ChannelEnds() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

void Must(bool condition) {
  if (!condition) _exit(3);
}

std::optional<std::string> CannotMakeNamespaces() {
  if (geteuid() != 0) return "needs root, to make network namespaces and cgroups";
  if (auto space = dynamix::NetworkNamespace::Create(); !space)
    return "needs iproute2 and a kernel that allows network namespaces: " + space.error();
  auto cgroup = Cgroup::Create(UniqueName());
  if (!cgroup.ok()) return "needs a writable cgroup version 2: " + cgroup.error();
  return std::nullopt;
}

std::optional<std::string> CannotUseIpv6() {
  const FileDescriptor file(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!file.valid()) return "needs a kernel with IPv6";
  return std::nullopt;
}

std::string UniqueName() {
  static int count = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

Cgroup MakeCgroup() { return std::move(Cgroup::Create(UniqueName())).value(); }

NetworkNamespace::NetworkNamespace()
    : dynamix::NetworkNamespace(std::move(dynamix::NetworkNamespace::Create()).value()) {}

void NetworkNamespace::Run(const std::string& command) const {
  const Status done = dynamix::NetworkNamespace::Run(command);
  EXPECT_TRUE(done.ok()) << command;
}

TwoHosts Cabled() {
  TwoHosts hosts;
  hosts.left.Run("ip link add wire type veth peer name wire netns " + hosts.right.path());
  hosts.left.Run("ip addr add 10.77.0.1/24 dev wire && ip link set wire up");
  hosts.right.Run("ip addr add 10.77.0.2/24 dev wire && ip link set wire up");
  return hosts;
}

void Channel::SendBytes(const void* bytes, std::size_t length) const {
  const ssize_t wrote = send(file_.get(), bytes, length, MSG_NOSIGNAL);
  EXPECT_EQ(wrote, static_cast<ssize_t>(length)) << "the child is gone";
}

void Channel::ReceiveBytes(void* bytes, std::size_t length) const {
  pollfd waiting{file_.get(), POLLIN, 0};
  const bool came = poll(&waiting, 1, kPatienceMs) == 1;
  const ssize_t got = came ? recv(file_.get(), bytes, length, 0) : -1;
  if (in_child_ && got <= 0) _exit(0);
  EXPECT_EQ(got, static_cast<ssize_t>(length)) << "no message from the other side";
}

Child::Child(Place place, const std::function<void(Channel&)>& work)
    : Child(ChannelEnds(), place, work) {}

Child::Child(std::pair<FileDescriptor, FileDescriptor> ends, Place place,
             const std::function<void(Channel&)>& work)
    : channel_(std::move(ends.first)) {
  pid_ = fork();
  if (pid_ != 0) {
    ends.second = FileDescriptor();
    EXPECT_TRUE(channel_.Receive<bool>()) << "the child did not reach its place";
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (place.cgroup != nullptr) Must(place.cgroup->Enter());
  if (place.space != nullptr) Must(place.space->Enter());
  channel_ = Channel(FileDescriptor());
  Channel test(std::move(ends.second), true);
  test.Send(true);
  work(test);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

void Child::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Child::Ended() {
  int status = -1;
  const bool waited = waitpid(pid_, &status, 0) == pid_;
  pid_ = -1;
  return waited && status == 0;
}

}  // namespace dynamix::test
