// The TCP_INFO source: asks each socket of this very process. Needs nothing but its own
// descriptors, so it works where netlink is walled off. A descriptor that is closed or reused while
// we look is harmless: sockets are told apart by their cookies.
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "dynamix/host/text_file.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/socket_ledger.h"

namespace dynamix {
namespace {

class OwnSocketsSource final : public NetworkSource {
 public:
  NetworkTier tier() const override { return NetworkTier::kOwnSockets; }

  Result<NetworkWindow> ReadWindow() override {
    DIR* files = opendir("/proc/self/fd");
    if (files == nullptr) return SystemError("/proc/self/fd", errno);
    while (const dirent* entry = readdir(files))
      if (entry->d_name[0] != '.') Look(std::atoi(entry->d_name));
    closedir(files);
    return ledger_.EndWindow();
  }

 private:
  void Look(int file) {
    std::uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    if (getsockopt(file, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) return;
    std::array<std::byte, 512> info;
    length = info.size();
    if (getsockopt(file, IPPROTO_TCP, TCP_INFO, info.data(), &length) != 0 || length < 1) return;
    const int state = static_cast<int>(info[0]);  // tcpi_state is the first byte
    if (state == TCP_LISTEN || state == TCP_CLOSE) return;
    ledger_.Observe(cookie, ParseTcpInfo({info.data(), length}));
  }

  SocketLedger ledger_;
};

}  // namespace

OpenedSource OpenOwnSocketsSource() {
  auto source = std::make_unique<OwnSocketsSource>();
  if (auto first = source->ReadWindow(); !first.ok()) return Error{first.error()};
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace dynamix
