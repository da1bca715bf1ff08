// The TCP connections of this process that a library opened and does not show: Gloo has no way to
// end collectives that wait, nor to ask whether a connection still stands. Needs no privilege;
// thread-safe. A connection that is closed meanwhile, its number taken by another file, is left
// alone.
#pragma once

#include <cstdint>
#include <vector>

struct sockaddr_storage;  // of <sys/socket.h>

namespace dynamix {

struct OwnSocket {
  int file = -1;
  std::uint64_t number = 0;  // of the socket in the kernel, which is never used again

  bool operator==(const OwnSocket&) const = default;
};

// Those that are connected, from one of these addresses of this machine.
std::vector<OwnSocket> ConnectedSockets(const std::vector<sockaddr_storage>& locals);
bool IsOpen(const OwnSocket& socket);
// Both sides of the connection see its end.
void ShutDown(const OwnSocket& socket);

}  // namespace dynamix
