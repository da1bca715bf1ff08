// Links with an exact delay, for kernels without netem: the ends are TAP devices, and a process
// holds each frame between them for a fixed time.
//
// A frame costs two system calls and about 5 us of CPU time, so delays are for links where they
// matter (milliseconds), not for fast ones. Frames never overtake each other on a link.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/network_namespace.h"

namespace dynamix {

// Why there can be no TAP devices here; nothing when there can.
std::optional<std::string> CannotMakeTaps();

// Makes a TAP device of that name in the namespace; it goes with the descriptor.
Result<FileDescriptor> OpenTap(const NetworkNamespace& space, const std::string& name);

struct DelayedLink {
  FileDescriptor near, far;
  std::chrono::microseconds to_far{0}, to_near{0};
};

// Never returns: for a HelperProcess.
[[noreturn]] void RelayFrames(const std::vector<DelayedLink>& links);

}  // namespace dynamix
