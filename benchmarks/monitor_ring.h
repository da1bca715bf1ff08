// An all-reduce load without a training runtime: worker processes in a ring over loopback TCP, each
// iteration a pause (compute, as on an emulated device) and a ring all-reduce of a gradient. For
// benchmarks: a failure ends the program with a sentence.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "dynamix/host/cgroup.h"

namespace dynamix::bench {

struct RingOptions {
  int workers = 4;
  int iterations = 60;
  std::size_t gradient_bytes = 4 << 20;
  double compute_seconds = 0.01;
};

class Ring {
 public:
  // Starts the workers, in the cgroup when there is one.
  Ring(const RingOptions& options, const Cgroup* cgroup);
  // Waits for their end. Seconds of each iteration of worker 0.
  std::vector<double> Finish();

 private:
  RingOptions options_;
  double* seconds_;  // shared with worker 0
  std::vector<pid_t> workers_;
};

// Ends the program unless the condition holds.
void Require(bool condition, const char* what);

// A network of our own, where the machine allows it, so that nothing else is in the way.
void EnterFreshNetwork();

}  // namespace dynamix::bench
