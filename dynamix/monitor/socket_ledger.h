// The ledger: turns what single sockets say about themselves into the window of a job. Shared by
// the sources that look at sockets one by one (inet_diag, TCP_INFO). Pure; one thread.
//
// Sockets are told apart by their cookie, which the kernel never gives twice. A socket first seen
// while the ledger is being opened counts from there on; one first seen later counts from its
// first byte. The delivery rate is bytes over busy time; where that was too short to be told from
// the kernel's clock steps, the rate of the last flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "dynamix/monitor/network_source.h"

namespace dynamix {

// TCP_INFO of one socket, reduced to what is used. Counters since the socket was opened.
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

class SocketLedger {
 public:
  // An open socket, as it is now.
  void Observe(std::uint64_t cookie, const TcpSample& sample);

  // What happened since the last call. The first call opens the ledger, and its window is empty.
  // Sockets not observed since the last call are closed, and forgotten.
  NetworkWindow EndWindow();

 private:
  struct Mark {
    TcpSample at;
    bool observed = true;  // in this window
  };

  void Add(const TcpSample& before, const TcpSample& now);

  struct Sums {
    double bytes_acked = 0, bytes_received = 0, segments_sent = 0, segments_retransmitted = 0;
    double bytes_times_rtt_us = 0, bytes_times_minimum_rtt_us = 0, bytes_times_window = 0;
    double rated_bytes = 0, rated_seconds = 0;
  };
  std::unordered_map<std::uint64_t, Mark> marks_;
  Sums sums_;
  bool open_ = false;
};

}  // namespace dynamix
