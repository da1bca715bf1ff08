// The inet_diag source. One dump per window gives every TCP socket of the network namespace with
// its TCP_INFO; those whose inode a process of the target holds are ours. What a socket does
// between the last read and its end is not seen. (The kernel can announce ended sockets with their
// TCP_INFO, SKNLGRP_INET_TCP_DESTROY; Linux 6.18 was seen to accept the subscription and send
// nothing, so this source does not rest on it.)
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/text_file.h"
#include "dynamix/monitor/inet_diag_message.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/process_tree.h"

namespace dynamix {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kDumpDeadline{200};
constexpr std::chrono::seconds kProcessesAge{1};

FileDescriptor OpenNetlink() {
  return FileDescriptor(
      socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
}

bool SameNamespace(int pid) {
  struct stat own, other;
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  return stat("/proc/self/ns/net", &own) != 0 || stat(path.c_str(), &other) != 0 ||
         own.st_ino == other.st_ino;
}

struct Opened {
  FileDescriptor file;
  int error_number = 0;
};

Opened Open() {
  Opened opened;
  opened.file = OpenNetlink();
  if (!opened.file.valid()) opened.error_number = errno;
  return opened;
}

// A socket stays in the namespace it was opened in, so a thread of its own visits the target's.
Opened OpenInNamespaceOf(int pid) {
  if (pid <= 0 || SameNamespace(pid)) return Open();
  Opened opened;
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  std::thread visitor([&] {
    const FileDescriptor space(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!space.valid() || setns(space.get(), CLONE_NEWNET) != 0)
      opened.error_number = errno;
    else
      opened = Open();
  });
  visitor.join();
  return opened;
}

class InetDiagSource final : public NetworkSource {
 public:
  InetDiagSource(Target target, FileDescriptor netlink)
      : target_(std::move(target)), netlink_(std::move(netlink)), buffer_(1 << 16) {}

  NetworkTier tier() const override { return NetworkTier::kInetDiag; }

  Result<NetworkWindow> ReadWindow() override {
    std::vector<SocketSample> sockets;
    for (const int family : {AF_INET, AF_INET6})
      if (Status dumped = Dump(family, sockets); !dumped.ok()) return Error{dumped.error()};
    if (Status known = Claim(sockets); !known.ok()) return Error{known.error()};
    for (const SocketSample& socket : sockets) {
      const auto owner = ours_.find(socket.cookie);
      if (owner != ours_.end() && owner->second) ledger_.Observe(socket.cookie, socket.tcp);
    }
    return ledger_.EndWindow();
  }

 private:
  Status Dump(int family, std::vector<SocketSample>& sockets) {
    const std::vector<std::byte> request = DumpRequest(family, ++sequence_);
    if (send(netlink_.get(), request.data(), request.size(), 0) < 0)
      return SystemError("netlink sock_diag", errno);
    const auto deadline = Clock::now() + kDumpDeadline;
    while (true) {
      const ssize_t got = recv(netlink_.get(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno != EAGAIN && errno != EINTR)
        return SystemError("netlink sock_diag", errno);
      if (got < 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd waiting{netlink_.get(), POLLIN, 0};
        if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0)
          return Error{"netlink sock_diag: no answer in time"};
        continue;
      }
      const DiagMessages messages =
          ParseDiagMessages({buffer_.data(), static_cast<std::size_t>(got)}, sequence_);
      sockets.insert(sockets.end(), messages.sockets.begin(), messages.sockets.end());
      // A kernel without IPv6 sockets has none to show.
      if (messages.error_number != 0 && family == AF_INET)
        return SystemError("netlink sock_diag", messages.error_number);
      if (messages.malformed) return Error{"netlink sock_diag: malformed answer"};
      if (messages.done) return Nothing{};
    }
  }

  // Decides for sockets not seen before whether they are ours. Looking through the files of the
  // processes is the dear part, so it is done only when there is such a socket.
  Status Claim(const std::vector<SocketSample>& sockets) {
    std::unordered_map<std::uint64_t, bool> known;
    std::vector<const SocketSample*> unknown;
    for (const SocketSample& socket : sockets) {
      const auto owner = ours_.find(socket.cookie);
      if (owner != ours_.end())
        known.insert(*owner);
      else if (socket.inode != 0)
        unknown.push_back(&socket);
    }
    ours_ = std::move(known);
    if (unknown.empty() && looked_) return Nothing{};
    const bool fresh = !looked_ || Clock::now() - processes_read_ >= kProcessesAge;
    if (fresh) {
      processes_ = ProcessesOf(target_);
      processes_read_ = Clock::now();
    }
    const auto inodes = SocketInodes(processes_);
    if (!inodes && !looked_) return Error{"may not look into the files of the process"};
    looked_ = true;
    if (!inodes) return Nothing{};
    for (const SocketSample* socket : unknown) {
      const bool ours = inodes->contains(socket->inode);
      // With an old list of processes "not ours" may be a new child's: decide next time.
      if (ours || fresh) ours_.emplace(socket->cookie, ours);
    }
    return Nothing{};
  }

  Target target_;
  FileDescriptor netlink_;
  std::vector<std::byte> buffer_;
  std::uint32_t sequence_ = 0;
  bool looked_ = false;
  std::vector<int> processes_;
  Clock::time_point processes_read_;
  std::unordered_map<std::uint64_t, bool> ours_;  // by cookie, of the sockets in the last dump
  SocketLedger ledger_;
};

}  // namespace

OpenedSource OpenInetDiagSource(const Target& target) {
  const std::string place =
      target.cgroup.empty() ? "/proc/" + std::to_string(target.pid) : target.cgroup;
  if ((target.pid > 0 || !target.cgroup.empty()) && access(place.c_str(), F_OK) != 0)
    return SystemError(place, errno);
  Opened opened = OpenInNamespaceOf(AnyProcess(target));
  if (!opened.file.valid()) return SystemError("netlink sock_diag", opened.error_number);
  auto source = std::make_unique<InetDiagSource>(target, std::move(opened.file));
  // The first read opens the ledger, and shows whether kernel and privileges allow the others.
  if (auto first = source->ReadWindow(); !first.ok()) return Error{first.error()};
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace dynamix
