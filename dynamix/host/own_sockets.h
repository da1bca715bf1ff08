// The TCP connections of this process, to shut down those that a library opened and does not show:
// Gloo has no way to end collectives that wait. Needs no privilege; thread-safe. A connection that is
// closed meanwhile, its number taken by another file, is left alone.
#pragma once

#include <cstdint>
#include <vector>

namespace dynamix {

struct OwnSocket {
  int file = -1;
  std::uint64_t number = 0;  // of the socket in the kernel, which is never used again

  bool operator==(const OwnSocket&) const = default;
};

// All that are connected.
std::vector<OwnSocket> ConnectedSockets();
// Those of `after` that are not in `before`.
std::vector<OwnSocket> NewSockets(const std::vector<OwnSocket>& before,
                                  const std::vector<OwnSocket>& after);
// Both sides of the connection see its end.
void ShutDown(const OwnSocket& socket);

}  // namespace dynamix
