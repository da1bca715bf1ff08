#include "dynamix/host/tcp_info.h"

#include <linux/tcp.h>

#include <algorithm>
#include <cstring>

namespace dynamix {

TcpSample ParseTcpInfo(std::span<const std::byte> info) {
  tcp_info kernel;
  std::memset(&kernel, 0, sizeof kernel);
  std::memcpy(&kernel, info.data(), std::min(info.size(), sizeof kernel));
  TcpSample sample;
  sample.bytes_acked = kernel.tcpi_bytes_acked;
  sample.bytes_received = kernel.tcpi_bytes_received;
  sample.segments_sent = kernel.tcpi_data_segs_out;
  sample.segments_retransmitted = kernel.tcpi_total_retrans;
  sample.smoothed_rtt_us = kernel.tcpi_rtt;
  sample.minimum_rtt_us = kernel.tcpi_min_rtt == ~0U ? 0 : kernel.tcpi_min_rtt;
  sample.congestion_window = kernel.tcpi_snd_cwnd;
  sample.delivery_bytes_per_s = kernel.tcpi_delivery_rate;
  sample.busy_us = kernel.tcpi_busy_time;
  return sample;
}

}  // namespace dynamix
