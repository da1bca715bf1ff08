// A scenario's events on the job's clock, what they make of a node at a moment, and when anything
// changes. Pure; slowdowns and bandwidth drops multiply, losses add up, as in the cluster model.
#pragma once

#include <cstdint>
#include <vector>

#include "dynamix/simulator/scenario.h"
#include "dynamix/simulator/workload.h"

namespace dynamix {

// The same events at the same times as on the backends `sim` and `virtual`.
std::vector<TimedEvent> EventsOf(const Scenario& scenario, const Workload& workload, int workers,
                                 std::uint64_t seed);
// The scenario's time budget in seconds of the job's clock.
double BudgetSeconds(const Scenario& scenario, const Workload& workload, int workers);

// The node as it is at `seconds`: speed, bandwidth and loss with the worker's events applied.
Node NodeAt(const Node& node, const std::vector<TimedEvent>& events, int worker, double seconds);

// Moments at which some event of these kinds begins or ends, in order, each once.
std::vector<double> ChangesOf(const std::vector<TimedEvent>& events,
                              const std::vector<EventKind>& kinds);

}  // namespace dynamix
