#include "dynamix/monitor/network_source.h"

#include <algorithm>
#include <array>

#include "dynamix/core/input_error.h"

namespace dynamix {

NetworkReport ToReport(const NetworkWindow& window, NetworkTier tier) {
  NetworkReport report;
  report.tier = tier;
  report.bytes_sent = window.bytes_sent;
  report.bytes_received = window.bytes_received;
  if (window.segments_sent > 0)
    report.retransmission_ratio =
        std::min(window.segments_retransmitted / window.segments_sent, 1.0);
  report.smoothed_rtt_us = window.smoothed_rtt_us;
  report.minimum_rtt_us = window.minimum_rtt_us;
  report.delivery_mbps = window.delivery_mbps;
  return report;
}

const char* Name(NetworkTier tier) {
  switch (tier) {
    case NetworkTier::kEbpf:
      return "eBPF";
    case NetworkTier::kInetDiag:
      return "inet_diag";
    case NetworkTier::kOwnSockets:
      return "TCP_INFO";
    case NetworkTier::kInterface:
      return "interface";
    case NetworkTier::kNone:
      break;
  }
  return "none";
}

NetworkTier ParseNetworkTier(std::string_view field, std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "interface", "own_sockets",
                                                      "inet_diag", "ebpf"};
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    throw InputError::OutOfRange(field, name, "ebpf, inet_diag, own_sockets, interface or none");
  return static_cast<NetworkTier>(found - kNames.begin());
}

}  // namespace dynamix
