// What a scenario's events make of a node at a moment, and when anything changes. Pure; slowdowns
// and bandwidth drops multiply, losses add up, as in the cluster model.
#pragma once

#include <vector>

#include "dynamix/job/scenario.h"

namespace dynamix {

// The node as it is at `seconds`: speed, bandwidth and loss with the worker's events applied.
Node NodeAt(const Node& node, const std::vector<TimedEvent>& events, int worker, double seconds);

// Moments at which some event of these kinds begins or ends, in order, each once.
std::vector<double> ChangesOf(const std::vector<TimedEvent>& events,
                              const std::vector<EventKind>& kinds);

}  // namespace dynamix
