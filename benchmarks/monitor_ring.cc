#include "benchmarks/monitor_ring.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "dynamix/host/file_descriptor.h"

namespace dynamix::bench {
namespace {

using Clock = std::chrono::steady_clock;

FileDescriptor Listen(sockaddr_in* address) {
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(address);
  socklen_t length = sizeof *address;
  Require(bind(listener.get(), generic, length) == 0 && listen(listener.get(), 4) == 0 &&
              getsockname(listener.get(), generic, &length) == 0,
          "listen on loopback");
  return listener;
}

// Sends one chunk to the right while it takes one from the left.
void Exchange(int right, int left, const char* out, char* in, std::size_t bytes) {
  std::size_t sent = 0, got = 0;
  while (sent < bytes || got < bytes) {
    pollfd files[2] = {{right, static_cast<short>(sent < bytes ? POLLOUT : 0), 0},
                       {left, static_cast<short>(got < bytes ? POLLIN : 0), 0}};
    Require(poll(files, 2, 30000) > 0, "progress in the ring");
    if (sent < bytes) {
      const ssize_t n = send(right, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      Require(n > 0 || errno == EAGAIN, "send to the right");
      sent += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    if (got < bytes) {
      const ssize_t n = recv(left, in + got, bytes - got, MSG_DONTWAIT);
      Require(n > 0 || (n < 0 && errno == EAGAIN), "receive from the left");
      got += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
  }
}

void AllReduce(int rank, const RingOptions& options, int right, int left,
               std::vector<float>& gradient) {
  const int workers = options.workers;
  const std::size_t chunk = gradient.size() / static_cast<std::size_t>(workers);
  std::vector<float> incoming(chunk);
  for (int step = 0; step < 2 * (workers - 1); ++step) {
    const bool reduce = step < workers - 1;
    const int outgoing = (rank - step + 2 * workers + (reduce ? 0 : 1)) % workers;
    const int taken = (outgoing + workers - 1) % workers;
    float* target = gradient.data() + static_cast<std::size_t>(taken) * chunk;
    Exchange(
        right, left,
        reinterpret_cast<const char*>(gradient.data() + static_cast<std::size_t>(outgoing) * chunk),
        reinterpret_cast<char*>(incoming.data()), chunk * sizeof(float));
    for (std::size_t i = 0; i < chunk; ++i)
      target[i] = reduce ? target[i] + incoming[i] : incoming[i];
  }
}

[[noreturn]] void Work(int rank, const RingOptions& options, int listener,
                       const sockaddr_in& neighbour, double* seconds) {
  const int right = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Require(connect(right, reinterpret_cast<const sockaddr*>(&neighbour), sizeof neighbour) == 0,
          "connect to the right");
  const int left = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const int one = 1;
  setsockopt(right, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::vector<float> gradient(options.gradient_bytes / sizeof(float), 1e-3F);
  for (int i = 0; i < options.iterations; ++i) {
    const auto start = Clock::now();
    usleep(static_cast<useconds_t>(options.compute_seconds * 1e6));
    AllReduce(rank, options, right, left, gradient);
    if (rank == 0) seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
  }
  _exit(0);
}

}  // namespace

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "monitor_bench: failed: %s (%s)\n", what, std::strerror(errno));
  _exit(1);
}

void EnterFreshNetwork() {
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return;
  const FileDescriptor file(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  Require(ioctl(file.get(), SIOCSIFFLAGS, &request) == 0, "bring loopback up");
}

Ring::Ring(const RingOptions& options, const Cgroup* cgroup) : options_(options) {
  const std::size_t bytes = static_cast<std::size_t>(options.iterations) * sizeof(double);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Require(shared != MAP_FAILED, "shared memory");
  seconds_ = static_cast<double*>(shared);
  std::vector<FileDescriptor> listeners;
  std::vector<sockaddr_in> addresses(static_cast<std::size_t>(options.workers));
  // An accepted socket belongs to the cgroup of its listener's maker: this process, which therefore
  // is in the ring's cgroup as well (see monitor_bench.cc).
  for (sockaddr_in& address : addresses) listeners.push_back(Listen(&address));
  for (int rank = 0; rank < options.workers; ++rank) {
    const pid_t worker = fork();
    if (worker == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Require(cgroup == nullptr || cgroup->Enter(), "enter the cgroup");
      const auto right = static_cast<std::size_t>((rank + 1) % options.workers);
      Work(rank, options, listeners[static_cast<std::size_t>(rank)].get(), addresses[right],
           seconds_);
    }
    workers_.push_back(worker);
  }
}

std::vector<double> Ring::Finish() {
  for (const pid_t worker : workers_) {
    int status = 0;
    waitpid(worker, &status, 0);
    Require(status == 0, "every worker of the ring ends well");
  }
  std::vector<double> seconds(seconds_, seconds_ + options_.iterations);
  munmap(seconds_, seconds.size() * sizeof(double));
  return seconds;
}

}  // namespace dynamix::bench
