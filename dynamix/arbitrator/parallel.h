// ParallelFor: independent pieces of work on a few threads.
#pragma once

#include <functional>

namespace dynamix {

// Runs body(0) ... body(count - 1) on `threads` threads, in any order; pieces must not share
// mutable state. The first exception is rethrown after all threads have stopped.
void ParallelFor(int count, int threads, const std::function<void(int)>& body);

}  // namespace dynamix
