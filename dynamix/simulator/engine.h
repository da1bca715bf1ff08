// The convergence engine that a workload describes.
#pragma once

#include <cstdint>
#include <memory>

#include "dynamix/job/workload.h"
#include "dynamix/simulator/convergence.h"
#include "dynamix/simulator/miniatures/data.h"

namespace dynamix {

// A fresh engine with the workload's optimizer. Quadratics need no pools, a miniature that of its
// family. Workload::OnWorkers comes first.
std::unique_ptr<Convergence> MakeConvergence(const Workload& workload, const MiniaturePools& pools,
                                             std::uint64_t seed);

}  // namespace dynamix
