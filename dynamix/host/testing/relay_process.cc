#include "dynamix/host/testing/relay_process.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "dynamix/host/delay_relay.h"

namespace dynamix::test {
namespace {

FileDescriptor OpenEnd(const NetworkNamespace& host, const std::string& address) {
  FileDescriptor tap = std::move(OpenTap(host, "wire")).value();
  host.Run("ip addr add " + address + "/24 dev wire && ip link set wire up txqueuelen 10000");
  return tap;
}

}  // namespace

std::optional<std::string> CannotRelay() {
  if (auto reason = CannotMakeNamespaces()) return reason;
  return CannotMakeTaps();
}

DelayedHosts::DelayedHosts(std::chrono::microseconds one_way) {
  std::vector<DelayedLink> links;
  links.push_back({OpenEnd(left_, "10.77.0.1"), OpenEnd(right_, "10.77.0.2"), one_way, one_way});
  relay_ = std::make_unique<HelperProcess>([&] { RelayFrames(links); });
}

}  // namespace dynamix::test
