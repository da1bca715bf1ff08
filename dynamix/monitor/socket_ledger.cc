#include "dynamix/monitor/socket_ledger.h"

#include <algorithm>

namespace dynamix {
namespace {

constexpr double kShortestBusySeconds = 0.1;  // 10 or more jiffies

}  // namespace

void SocketLedger::Observe(std::uint64_t cookie, const TcpSample& sample) {
  const auto [entry, is_new] = marks_.try_emplace(cookie);
  Mark& mark = entry->second;
  if (open_) Add(mark.at, sample);
  mark.at = sample;
  mark.observed = true;
}

void SocketLedger::Add(const TcpSample& before, const TcpSample& now) {
  const auto grown = [](auto from, auto to) { return to > from ? double(to - from) : 0.0; };
  const auto wrapped = [](std::uint32_t from, std::uint32_t to) {
    return std::max(0.0, double(static_cast<std::int32_t>(to - from)));
  };
  const double acked = grown(before.bytes_acked, now.bytes_acked);
  sums_.bytes_acked += acked;
  sums_.bytes_received += grown(before.bytes_received, now.bytes_received);
  sums_.segments_sent += wrapped(before.segments_sent, now.segments_sent);
  sums_.segments_retransmitted +=
      wrapped(before.segments_retransmitted, now.segments_retransmitted);
  sums_.bytes_times_rtt_us += acked * now.smoothed_rtt_us;
  sums_.bytes_times_minimum_rtt_us +=
      acked * (now.minimum_rtt_us > 0 ? now.minimum_rtt_us : now.smoothed_rtt_us);
  sums_.bytes_times_window += acked * now.congestion_window;
  const double busy_seconds = grown(before.busy_us, now.busy_us) * 1e-6;
  if (busy_seconds >= kShortestBusySeconds) {
    sums_.rated_bytes += acked;
    sums_.rated_seconds += busy_seconds;
  } else if (now.delivery_bytes_per_s > 0) {
    sums_.rated_bytes += acked;
    sums_.rated_seconds += acked / static_cast<double>(now.delivery_bytes_per_s);
  }
}

NetworkWindow SocketLedger::EndWindow() {
  NetworkWindow window;
  if (open_) {
    window.bytes_sent = sums_.bytes_acked;
    window.bytes_received = sums_.bytes_received;
    window.segments_sent = sums_.segments_sent;
    window.segments_retransmitted = sums_.segments_retransmitted;
    if (sums_.bytes_acked > 0) {
      window.smoothed_rtt_us = sums_.bytes_times_rtt_us / sums_.bytes_acked;
      window.minimum_rtt_us = sums_.bytes_times_minimum_rtt_us / sums_.bytes_acked;
      window.congestion_window = sums_.bytes_times_window / sums_.bytes_acked;
    }
    if (sums_.rated_seconds > 0)
      window.delivery_mbps = sums_.rated_bytes / sums_.rated_seconds * 8e-6;
  }
  sums_ = {};
  open_ = true;
  std::erase_if(marks_, [](const auto& entry) { return !entry.second.observed; });
  for (auto& [cookie, mark] : marks_) mark.observed = false;
  window.open_sockets = static_cast<double>(marks_.size());
  return window;
}

}  // namespace dynamix
