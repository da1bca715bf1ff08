// Messages of the kernel's sock_diag netlink family: the request for all TCP sockets, and a parser
// of what comes back. Pure functions; any thread.
//
// The parser takes any bytes: lengths are checked against the buffer, and a message that does not
// fit ends the list with `malformed` (inet_diag_fuzz.cc). Format: sock_diag(7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dynamix/monitor/socket_ledger.h"

namespace dynamix {

struct SocketSample {
  std::uint64_t cookie = 0;
  std::uint64_t inode = 0;  // 0 when no file holds the socket (not accepted yet, or closed)
  TcpSample tcp;
};

struct DiagMessages {
  std::vector<SocketSample> sockets;  // those with TCP_INFO
  bool done = false;                  // the kernel has sent the last one
  bool malformed = false;
  int error_number = 0;  // what the kernel refused, 0 when nothing
};

// A dump of every connected TCP socket of one address family (AF_INET or AF_INET6).
std::vector<std::byte> DumpRequest(int family, std::uint32_t sequence);

// Messages of another sequence, late answers to an earlier request, are left out.
DiagMessages ParseDiagMessages(std::span<const std::byte> bytes, std::uint32_t sequence);

}  // namespace dynamix
