#include "dynamix/host/socket_guard.h"

#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

bool Listens(int file, int port) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0)
    return false;
  sockaddr_storage bound{};
  size = sizeof bound;
  if (getsockname(file, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return false;
  if (bound.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port) == port;
  return bound.ss_family == AF_INET6 &&
         ntohs(reinterpret_cast<sockaddr_in6&>(bound).sin6_port) == port;
}

// All descriptors of this process that listen on the port.
std::vector<int> FindListeners(int port) {
  std::vector<int> found = OpenDescriptors();
  std::erase_if(found, [port](int file) { return !Listens(file, port); });
  return found;
}

bool SameHost(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  return a.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

Status AcceptOnlyFrom(int port, const std::vector<std::string>& interfaces) {
  // Load the packet's interface; pass it if it is one of these, else drop it.
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(SKF_AD_OFF + SKF_AD_IFINDEX))};
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    const unsigned index = if_nametoindex(interfaces[i].c_str());
    if (index == 0) return Error{"no interface " + interfaces[i]};
    const auto to_pass = static_cast<__u8>(interfaces.size() - i);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index, to_pass, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const std::vector<int> listeners = FindListeners(port);
  if (listeners.empty()) return Error{"nobody listens on port " + std::to_string(port) + " here"};
  for (const int file : listeners)
    if (setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
      return Error{std::string("the socket takes no filter: ") + std::strerror(errno)};
  return Nothing{};
}

std::vector<std::string> InterfacesOf(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> wanted(found, freeaddrinfo);
  ifaddrs* own = nullptr;
  if (getifaddrs(&own) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(own, freeifaddrs);
  std::set<std::string> names;
  std::string loopback;
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) loopback = one->ifa_name;
    if (one->ifa_addr == nullptr) continue;
    for (const addrinfo* each = wanted.get(); each != nullptr; each = each->ai_next)
      if (SameHost(*one->ifa_addr, *each->ai_addr)) names.emplace(one->ifa_name);
  }
  if (!names.empty() && !loopback.empty()) names.insert(loopback);
  return {names.begin(), names.end()};
}

}  // namespace dynamix
