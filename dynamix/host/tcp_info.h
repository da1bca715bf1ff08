// What the kernel tells of one TCP socket (TCP_INFO), reduced to what is used. Plain values and a
// pure function; any bytes are taken, nothing fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dynamix {

// Counters since the socket was opened.
struct TcpSample {
  std::uint64_t bytes_acked = 0, bytes_received = 0;
  std::uint32_t segments_sent = 0, segments_retransmitted = 0;  // these wrap
  std::uint32_t smoothed_rtt_us = 0, minimum_rtt_us = 0;        // 0: not measured yet
  std::uint32_t congestion_window = 0;                          // segments
  std::uint64_t delivery_bytes_per_s = 0;  // of the last flight; 0: not measured yet
  std::uint64_t busy_us = 0;               // time with data unacknowledged, in steps of a jiffy
};

// Reads the kernel's struct tcp_info, whose length depends on the kernel: what is absent stays 0.
TcpSample ParseTcpInfo(std::span<const std::byte> info);

}  // namespace dynamix
