#include "dynamix/simulator/engine.h"

#include "dynamix/core/check.h"
#include "dynamix/simulator/miniatures/miniature.h"
#include "dynamix/simulator/quadratic.h"

namespace dynamix {

std::unique_ptr<Convergence> MakeConvergence(const Workload& workload, const MiniaturePools& pools,
                                             std::uint64_t seed) {
  DYNAMIX_CHECK(workload.scales_with_workers == 0, "OnWorkers comes first");
  if (workload.is_quadratic()) {
    return std::make_unique<Quadratic>(std::get<QuadraticOptions>(workload.convergence),
                                       workload.optimizer, seed);
  }
  MiniatureOptions options = std::get<MiniatureOptions>(workload.convergence);
  options.optimizer = workload.optimizer;
  options.seed = seed;
  return std::make_unique<Miniature>(options, pools);
}

}  // namespace dynamix
