#include "dynamix/monitor/socket_ledger.h"

#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <cstring>

#include "dynamix/monitor/inet_diag_message.h"

namespace dynamix {
namespace {

TcpSample Sample(std::uint64_t acked, std::uint32_t rtt_us) {
  TcpSample sample;
  sample.bytes_acked = acked;
  sample.smoothed_rtt_us = rtt_us;
  sample.minimum_rtt_us = rtt_us / 2;
  sample.congestion_window = 10;
  return sample;
}

TEST(SocketLedgerTest, CountsOldSocketsFromTheStartAndNewOnesFromTheirFirstByte) {
  SocketLedger ledger;
  ledger.Observe(1, Sample(1000, 100));
  EXPECT_TRUE(IsMissing(ledger.EndWindow().bytes_sent)) << "the first call only opens";
  ledger.Observe(1, Sample(1300, 100));
  ledger.Observe(2, Sample(50, 100));
  const NetworkWindow window = ledger.EndWindow();
  EXPECT_EQ(window.bytes_sent, 350);
  EXPECT_EQ(window.open_sockets, 2);
}

TEST(SocketLedgerTest, WeighsRoundTripsByBytes) {
  SocketLedger ledger;
  ledger.EndWindow();
  ledger.Observe(1, Sample(300, 100));
  ledger.Observe(2, Sample(100, 500));
  ledger.Observe(3, Sample(0, 2));  // idle: says nothing about the path now
  const NetworkWindow window = ledger.EndWindow();
  EXPECT_DOUBLE_EQ(window.smoothed_rtt_us, (300 * 100 + 100 * 500) / 400.0);
  EXPECT_DOUBLE_EQ(window.minimum_rtt_us, (300 * 50 + 100 * 250) / 400.0);
  EXPECT_DOUBLE_EQ(window.congestion_window, 10);
}

TEST(SocketLedgerTest, RateIsBytesOverBusyTimeOrTheLastFlightWhenThatWasShort) {
  SocketLedger ledger;
  ledger.EndWindow();
  TcpSample sample = Sample(1000000, 100);
  sample.busy_us = 500000;
  sample.delivery_bytes_per_s = 77;
  ledger.Observe(1, sample);
  EXPECT_DOUBLE_EQ(ledger.EndWindow().delivery_mbps, 16);
  sample.bytes_acked += 1000;
  sample.busy_us += 10;
  sample.delivery_bytes_per_s = 1000000;
  ledger.Observe(1, sample);
  EXPECT_DOUBLE_EQ(ledger.EndWindow().delivery_mbps, 8);
}

TEST(SocketLedgerTest, SegmentCountersMayWrap) {
  SocketLedger ledger;
  TcpSample sample;
  sample.segments_sent = 0xfffffff0U;
  ledger.Observe(1, sample);
  ledger.EndWindow();
  sample.segments_sent = 0x10U;
  ledger.Observe(1, sample);
  EXPECT_EQ(ledger.EndWindow().segments_sent, 0x20);
}

TEST(SocketLedgerTest, AnIdleWindowHasNoRtt) {
  SocketLedger ledger;
  ledger.EndWindow();
  const NetworkWindow window = ledger.EndWindow();
  EXPECT_EQ(window.bytes_sent, 0);
  EXPECT_TRUE(IsMissing(window.smoothed_rtt_us));
  EXPECT_TRUE(IsMissing(ToReport(window, NetworkTier::kInetDiag).retransmission_ratio));
}

TEST(InetDiagMessageTest, ACutMessageEndsTheListWithoutHarm) {
  std::vector<std::byte> bytes = DumpRequest(AF_INET, 7);
  EXPECT_FALSE(ParseDiagMessages(bytes, 7).malformed);
  bytes.resize(bytes.size() - 1);
  EXPECT_TRUE(ParseDiagMessages(bytes, 7).malformed);
}

TEST(InetDiagMessageTest, TheKernelsRefusalIsAnErrorNumber) {
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } refusal{};
  refusal.header.nlmsg_len = sizeof refusal;
  refusal.header.nlmsg_type = NLMSG_ERROR;
  refusal.header.nlmsg_seq = 7;
  refusal.error.error = -EPERM;
  std::vector<std::byte> bytes(sizeof refusal);
  std::memcpy(bytes.data(), &refusal, sizeof refusal);
  const DiagMessages messages = ParseDiagMessages(bytes, 7);
  EXPECT_EQ(messages.error_number, EPERM);
  EXPECT_TRUE(messages.done);
  EXPECT_FALSE(ParseDiagMessages(bytes, 8).done) << "a late answer to another request";
}

}  // namespace
}  // namespace dynamix
