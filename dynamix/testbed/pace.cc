#include "dynamix/testbed/pace.h"

#include <cmath>

#include "dynamix/testbed/timeline.h"

namespace dynamix {

Pace::Pace(const Scenario& scenario, const Workload& workload, int workers, int rank,
           std::uint64_t seed)
    : cluster_(scenario, workload.cost, workers),
      rank_(rank),
      jitter_(cluster_.nodes()[rank].jitter),
      rng_(Rng(seed).Fork(static_cast<std::uint64_t>(rank))) {
  cluster_.SetEvents(EventsOf(scenario, workload, workers, seed));
}

double Pace::NextMs(int batch, double seconds) {
  cluster_.BeginWindow(seconds);
  const double z = rng_.Normal();
  return cluster_.ComputeMs(rank_, batch) * std::exp(jitter_ * z - 0.5 * jitter_ * jitter_);
}

}  // namespace dynamix
