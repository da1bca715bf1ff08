// Any bytes as answers of the kernel: the parser must stay inside them, and every socket it finds
// must be digestible for the ledger.
#include <cstdint>

#include "dynamix/core/check.h"
#include "dynamix/monitor/inet_diag_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dynamix;
  if (size < 1) return 0;
  const std::uint32_t sequence = data[0];
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const DiagMessages messages = ParseDiagMessages(bytes, sequence);
  SocketLedger ledger;
  ledger.EndWindow();
  for (const SocketSample& socket : messages.sockets) ledger.Observe(socket.cookie, socket.tcp);
  const NetworkWindow window = ledger.EndWindow();
  DYNAMIX_CHECK(window.bytes_sent >= 0, "sums only grow");
  DYNAMIX_CHECK(window.segments_sent >= 0, "sums only grow");
  (void)ParseTcpInfo(bytes);
  return 0;
}
