// The TCP_INFO source: asks each socket of this very process. Needs nothing but its own
// descriptors, so it works where netlink is walled off. A descriptor that is closed or reused while
// we look is harmless: sockets are told apart by their cookies. Which descriptors are sockets may be
// looked up less often than they are read.
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "dynamix/host/text_file.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/socket_ledger.h"

namespace dynamix {
namespace {

class OwnSocketsSource final : public NetworkSource {
 public:
  explicit OwnSocketsSource(double refresh_seconds) : refresh_seconds_(refresh_seconds) {}

  NetworkTier tier() const override { return NetworkTier::kOwnSockets; }

  Result<NetworkWindow> ReadWindow() override {
    const auto now = std::chrono::steady_clock::now();
    if (sockets_.empty() || now - listed_ >= refresh_seconds_) {
      if (Status listed = List(); !listed.ok()) return Error{listed.error()};
      listed_ = now;
    }
    std::erase_if(sockets_, [this](int file) { return !Look(file); });
    return ledger_.EndWindow();
  }

 private:
  Status List() {
    DIR* files = opendir("/proc/self/fd");
    if (files == nullptr) return SystemError("/proc/self/fd", errno);
    sockets_.clear();
    while (const dirent* entry = readdir(files))
      if (entry->d_name[0] != '.') sockets_.push_back(std::atoi(entry->d_name));
    closedir(files);
    return Nothing{};
  }

  // False when it is no connection.
  bool Look(int file) {
    std::uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    if (getsockopt(file, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) return false;
    std::array<std::byte, 512> info;
    length = info.size();
    if (getsockopt(file, IPPROTO_TCP, TCP_INFO, info.data(), &length) != 0 || length < 1)
      return false;
    const int state = static_cast<int>(info[0]);  // tcpi_state is the first byte
    if (state == TCP_LISTEN || state == TCP_CLOSE) return false;
    ledger_.Observe(cookie, ParseTcpInfo({info.data(), length}));
    return true;
  }

  std::chrono::duration<double> refresh_seconds_;
  std::chrono::steady_clock::time_point listed_;
  std::vector<int> sockets_;  // descriptors, at that moment
  SocketLedger ledger_;
};

}  // namespace

OpenedSource OpenOwnSocketsSource(double refresh_seconds) {
  auto source = std::make_unique<OwnSocketsSource>(refresh_seconds);
  if (auto first = source->ReadWindow(); !first.ok()) return Error{first.error()};
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace dynamix
