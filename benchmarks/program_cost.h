// Time the kernel spent in an eBPF program, by the kernel's own clock around each call. Switched on
// for the life of the object; needs CAP_SYS_ADMIN, and reads as zero without it.
#pragma once

#include <cstdint>

#include "dynamix/host/file_descriptor.h"

namespace dynamix::bench {

struct ProgramCost {
  std::uint64_t calls = 0, nanoseconds = 0;
};

class ProgramClock {
 public:
  // The youngest program of that name.
  explicit ProgramClock(const char* name);
  // Since the object was made.
  ProgramCost Read() const;

 private:
  FileDescriptor statistics_, program_;
  ProgramCost start_;
};

}  // namespace dynamix::bench
