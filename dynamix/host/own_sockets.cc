#include "dynamix/host/own_sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

bool IsConnected(int file) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP)
    return false;
  sockaddr_storage peer{};
  size = sizeof peer;
  return getpeername(file, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

std::uint64_t NumberOf(int file) {
  struct stat about {};
  return fstat(file, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

bool IsSame(const sockaddr_storage& one, const sockaddr_storage& other) {
  if (one.ss_family != other.ss_family) return false;
  if (one.ss_family == AF_INET) {
    const auto& a = reinterpret_cast<const sockaddr_in&>(one);
    const auto& b = reinterpret_cast<const sockaddr_in&>(other);
    return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
  }
  const auto& a = reinterpret_cast<const sockaddr_in6&>(one);
  const auto& b = reinterpret_cast<const sockaddr_in6&>(other);
  return one.ss_family == AF_INET6 && a.sin6_port == b.sin6_port &&
         std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0;
}

}  // namespace

std::vector<OwnSocket> ConnectedSockets(const std::vector<sockaddr_storage>& locals) {
  std::vector<OwnSocket> found;
  for (const int file : OpenDescriptors()) {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (!IsConnected(file) || getsockname(file, reinterpret_cast<sockaddr*>(&own), &size) != 0)
      continue;
    if (std::any_of(locals.begin(), locals.end(),
                    [&](const sockaddr_storage& local) { return IsSame(local, own); }))
      found.push_back({file, NumberOf(file)});
  }
  return found;
}

bool IsOpen(const OwnSocket& socket) {
  return socket.number != 0 && NumberOf(socket.file) == socket.number;
}

void ShutDown(const OwnSocket& socket) {
  if (IsOpen(socket)) shutdown(socket.file, SHUT_RDWR);
}

}  // namespace dynamix
