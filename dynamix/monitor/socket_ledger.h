// The ledger: turns what single sockets say about themselves into the window of a job. Shared by
// the sources that look at sockets one by one (inet_diag, TCP_INFO). Pure; one thread.
//
// Sockets are told apart by their cookie, which the kernel never gives twice. A socket first seen
// while the ledger is being opened counts from there on; one first seen later counts from its
// first byte. The delivery rate is bytes over busy time; where that was too short to be told from
// the kernel's clock steps, the rate of the last flight.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dynamix/host/tcp_info.h"
#include "dynamix/monitor/network_source.h"

namespace dynamix {

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
