#include "dynamix/host/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/socket_guard.h"

namespace dynamix {
namespace {

constexpr const char* kTheWorld =
    "192.0.2.1";  // reserved for examples: only the default route leads there

std::string Text(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr ? text : "";
}

bool IsLoopback(const std::string& address) { return address.starts_with("127."); }

std::string AddressTowards(const std::string& peer) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(peer.c_str(), "9", &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  // Connecting a datagram socket sends nothing; the kernel only chooses the way.
  const FileDescriptor file(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (connect(file.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(file.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return "";
  return Text(own);
}

// Of the interface with this name; of the first one that is up and not loopback when there is none.
std::string AddressOf(const std::string& interface) {
  ifaddrs* own = nullptr;
  if (getifaddrs(&own) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(own, freeifaddrs);
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (interface.empty() ? usable : interface == one->ifa_name)
      return Text(*reinterpret_cast<const sockaddr_in*>(one->ifa_addr));
  }
  return "";
}

}  // namespace

std::string OwnAddress(const std::string& peer, const std::string& interface) {
  if (!interface.empty()) return AddressOf(interface);
  const std::string towards = AddressTowards(peer);
  if (!towards.empty() && !IsLoopback(towards)) return towards;
  const std::string outwards = AddressTowards(kTheWorld);
  return outwards.empty() || IsLoopback(outwards) ? AddressOf("") : outwards;
}

std::string InterfaceTowards(const std::string& peer) {
  const std::string address = OwnAddress(peer, "");
  if (address.empty()) return "";
  for (const std::string& name : InterfacesOf(address))
    if (AddressOf(name) == address) return name;
  return "";
}

}  // namespace dynamix
