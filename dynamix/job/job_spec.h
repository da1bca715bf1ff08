// A job: what is trained, on what, by how many, from which seed. A plain value; the same on all
// backends.
#pragma once

#include <cstdint>

#include "dynamix/core/report.h"
#include "dynamix/job/scenario.h"
#include "dynamix/job/workload.h"

namespace dynamix {

struct JobSpec {
  Scenario scenario;
  Workload workload;               // on this number of workers (Workload::OnWorkers applied)
  int workers = 1;                 // [1, 4096]
  std::uint64_t seed = 1;          // of weights, order of samples, jitter and events
  int window = kWindowIterations;  // iterations, [1, 100000]
};

}  // namespace dynamix
