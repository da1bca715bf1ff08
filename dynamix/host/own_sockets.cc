#include "dynamix/host/own_sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

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

}  // namespace

std::vector<OwnSocket> ConnectedSockets() {
  std::vector<OwnSocket> found;
  for (const int file : OpenDescriptors())
    if (IsConnected(file)) found.push_back({file, NumberOf(file)});
  return found;
}

std::vector<OwnSocket> NewSockets(const std::vector<OwnSocket>& before,
                                  const std::vector<OwnSocket>& after) {
  std::vector<OwnSocket> added;
  std::copy_if(after.begin(), after.end(), std::back_inserter(added), [&](const OwnSocket& one) {
    return std::find(before.begin(), before.end(), one) == before.end();
  });
  return added;
}

void ShutDown(const OwnSocket& socket) {
  if (socket.number != 0 && NumberOf(socket.file) == socket.number)
    shutdown(socket.file, SHUT_RDWR);
}

}  // namespace dynamix
