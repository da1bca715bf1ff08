#include "dynamix/rpc/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "dynamix/rpc/address.h"

namespace dynamix {
namespace {

// Descriptors left for files, pipes and whatever else the process opens.
constexpr int kReserve = 64;
constexpr int kBacklog = 512;
// After the system refused a connection (no descriptors, no memory).
constexpr int kPauseMs = 50;

std::string SystemError() { return std::strerror(errno); }

// The largest descriptor of a connection. The system gives the lowest free number, so a number says
// how many are open at least.
int HighestDescriptor(int own, int max_connections) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::int64_t wanted = std::int64_t{own} + kReserve + max_connections;
  const std::int64_t possible =
      known ? static_cast<std::int64_t>(limit.rlim_cur) - kReserve : wanted;
  return static_cast<int>(std::max<std::int64_t>(own + 1, std::min(wanted, possible)));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Open(const ListenerOptions& options) {
  std::unique_ptr<Listener> listener(new Listener(options));  // NOLINT: the constructor is private
  if (Status bound = listener->Bind(); !bound)
    return Error{"cannot listen on " + options.address + ": " + bound.error()};
  listener->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (listener->wake_ < 0) return Error{"cannot listen: " + SystemError()};
  listener->highest_ = HighestDescriptor(listener->wake_, options.max_connections);
  return listener;
}

Listener::~Listener() {
  Stop();
  for (const int socket : sockets_) close(socket);
  if (wake_ >= 0) close(wake_);
  if (!path_.empty()) unlink(path_.c_str());
}

Status Listener::Bind() {
  const std::string& address = options_.address;
  if (address.starts_with("unix:")) {
    const std::string path = address.substr(address.starts_with("unix://") ? 7 : 5);
    return BindUnix(path);
  }
  const std::optional<HostPort> wanted = ParseHostPort(address);
  if (!wanted) return Error{"expected " + std::string(kHostPortForm)};
  const std::string port = std::to_string(wanted->port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int code = getaddrinfo(wanted->host.c_str(), port.c_str(), &hints, &found); code != 0)
    return Error{gai_strerror(code)};
  // A name may have several addresses: all of them, on one port.
  std::string problem;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    sockaddr_storage copy{};
    std::memcpy(&copy, one->ai_addr, one->ai_addrlen);
    auto& number = one->ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(copy).sin6_port
                                              : reinterpret_cast<sockaddr_in&>(copy).sin_port;
    if (port_ != 0) number = htons(static_cast<std::uint16_t>(port_));
    if (!Add(one->ai_family, &copy, one->ai_addrlen) && problem.empty()) problem = SystemError();
  }
  freeaddrinfo(found);
  if (sockets_.empty()) return Error{problem.empty() ? "no such address" : problem};
  return Nothing{};
}

Status Listener::BindUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{"expected a path of 1 to " + std::to_string(sizeof address.sun_path - 1) +
                 " characters"};
  std::memcpy(address.sun_path, path.data(), path.size());
  // What an arbitrator that was killed left behind; never a file of another kind.
  struct stat old {};
  if (lstat(path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode)) unlink(path.c_str());
  if (!Add(AF_UNIX, &address, sizeof address)) return Error{SystemError()};
  path_ = path;
  return Nothing{};
}

bool Listener::Add(int family, const void* address, std::size_t size) {
  const int socket_file = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_file < 0) return false;
  const int on = 1;
  if (family != AF_UNIX) setsockopt(socket_file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  const bool good =
      bind(socket_file, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0 &&
      listen(socket_file, kBacklog) == 0 &&
      getsockname(socket_file, reinterpret_cast<sockaddr*>(&bound), &length) == 0;
  if (!good) {
    const int error = errno;
    close(socket_file);
    errno = error;
    return false;
  }
  if (family == AF_INET) port_ = ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  if (family == AF_INET6) port_ = ntohs(reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
  sockets_.push_back(socket_file);
  return true;
}

void Listener::Run(std::function<void(int)> take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { Accept(); });
}

void Listener::Stop() {
  stopping_ = true;
  if (wake_ >= 0) eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
}

void Listener::Accept() {
  std::vector<pollfd> files = {{wake_, POLLIN, 0}};
  for (const int socket : sockets_) files.push_back({socket, POLLIN, 0});
  while (!stopping_) {
    if (poll(files.data(), files.size(), -1) < 0) continue;
    for (std::size_t i = 1; i < files.size(); ++i)
      if (files[i].revents != 0) AcceptFrom(files[i].fd);
  }
}

void Listener::AcceptFrom(int socket) {
  while (!stopping_) {
    const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      TurnAway(SystemError());
      // The connection waits in the system's queue: not to be asked for at once again.
      pollfd stop{wake_, POLLIN, 0};
      poll(&stop, 1, kPauseMs);
      return;
    }
    if (connection > highest_) {
      close(connection);
      TurnAway("too many connections");
      continue;
    }
    const int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails for unix sockets
    take_(connection);
  }
}

// Tells the first and then every doubling, so that a flood of connections is not one of lines.
void Listener::TurnAway(const std::string& why) {
  const std::int64_t count = ++turned_away_;
  if (count < 2 * told_away_ || !options_.warn) return;
  told_away_ = count;
  options_.warn(why + ": " + std::to_string(count) + " connections turned away so far");
}

}  // namespace dynamix
