#include "dynamix/host/delay_relay.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "dynamix/host/text_file.h"

namespace dynamix {
namespace {

using Clock = std::chrono::steady_clock;

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

// One direction of a link.
struct Lane {
  int from, to;
  std::chrono::microseconds delay;
  std::deque<Frame> frames;

  void Take() {
    char bytes[65536];
    for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
      frames.push_back({Clock::now() + delay, std::vector<char>(bytes, bytes + got)});
  }
  void Deliver() {
    while (!frames.empty() && frames.front().due <= Clock::now()) {
      (void)!write(to, frames.front().bytes.data(), frames.front().bytes.size());
      frames.pop_front();
    }
  }
};

timespec UntilNext(const std::vector<Lane>& lanes) {
  auto wake = Clock::now() + std::chrono::seconds(1);
  for (const Lane& lane : lanes)
    if (!lane.frames.empty()) wake = std::min(wake, lane.frames.front().due);
  const auto wait =
      std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(wake - Clock::now()));
  return {static_cast<time_t>(wait.count() / 1000000000),
          static_cast<long>(wait.count() % 1000000000)};
}

}  // namespace

std::optional<std::string> CannotMakeTaps() {
  const FileDescriptor file(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!file.valid()) return "needs /dev/net/tun, for links with an exact delay";
  return std::nullopt;
}

Result<FileDescriptor> OpenTap(const NetworkNamespace& space, const std::string& name) {
  FileDescriptor tap;
  int error = EPERM;
  space.Visit([&] {
    FileDescriptor file(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (file.valid() && ioctl(file.get(), TUNSETIFF, &request) == 0)
      tap = std::move(file);
    else
      error = errno;
  });
  if (!tap.valid()) return SystemError("making the TAP device " + name, error);
  return tap;
}

void RelayFrames(const std::vector<DelayedLink>& links) {
  std::vector<Lane> lanes;
  std::vector<pollfd> files;
  for (const DelayedLink& link : links) {
    lanes.push_back({link.near.get(), link.far.get(), link.to_far, {}});
    lanes.push_back({link.far.get(), link.near.get(), link.to_near, {}});
  }
  for (const Lane& lane : lanes) files.push_back({lane.from, POLLIN, 0});
  while (true) {
    const timespec wait = UntilNext(lanes);
    ppoll(files.data(), files.size(), &wait, nullptr);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (files[i].revents != 0) lanes[i].Take();
      lanes[i].Deliver();
    }
  }
}

}  // namespace dynamix
