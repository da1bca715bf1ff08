#include "dynamix/testbed/pace.h"

#include <cmath>

#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {

Pace::Pace(const JobSpec& job, int rank)
    : cluster_(job.scenario, job.workload.cost, job.workers),
      rank_(rank),
      jitter_(cluster_.nodes()[rank].jitter),
      rng_(Rng(job.seed).Fork(static_cast<std::uint64_t>(rank))) {
  cluster_.SetEvents(EventsOf(job));
}

double Pace::NextMs(int batch, double seconds) {
  cluster_.BeginWindow(seconds);
  const double z = rng_.Normal();
  return cluster_.ComputeMs(rank_, batch) * std::exp(jitter_ * z - 0.5 * jitter_ * jitter_);
}

}  // namespace dynamix
