// What the kernel program and the user side of the eBPF source share: fixed-width, no pointers.
//
// Written by tcp_monitor.bpf.c with atomic operations, read by ebpf_source.cc through a memory
// mapping, so that reading a window costs no system call per socket. Counters only grow; the user
// side takes differences. C and C++ read this file.
#pragma once

// Counters of one socket when it was last looked at, kept in its socket storage.
struct SocketMark {
  unsigned long long bytes_acked;
  unsigned long long bytes_received;
  unsigned long long segments_sent;
  unsigned long long segments_retransmitted;
  unsigned long long
      adopted;  // 1: it was open before the program came, so its timers are not heard
};

// Sums over all sockets of the job since the program was attached, closed ones included.
struct JobTotals {
  unsigned long long bytes_acked;
  unsigned long long bytes_received;
  unsigned long long segments_sent;           // segments with data, retransmissions included
  unsigned long long segments_retransmitted;  // as TCP_INFO's total_retrans
  unsigned long long timeouts;                // retransmission timers that fired
  unsigned long long sockets_opened;
  unsigned long long sockets_closed;
  unsigned long long sockets_seen;  // by `refresh`: one run adds the number of open sockets
  unsigned long long adopted_seen;  // the same, of those that were open before
  // Weighted by the bytes acknowledged since the socket was last looked at: divide by bytes_acked
  // (RTT, window) or into rated_bytes (rate).
  unsigned long long bytes_times_rtt_us;
  unsigned long long bytes_times_minimum_rtt_us;
  unsigned long long bytes_times_window;  // congestion window in segments
  unsigned long long rated_bytes;         // bytes of sockets that have a delivery rate
  unsigned long long rated_ns;            // time these bytes take at their sockets' delivery rates
};
