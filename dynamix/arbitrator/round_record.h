// What the arbitrator of a live job leaves of a round: plain values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"

namespace dynamix {

// One closed round, for records, metrics and logs.
struct RoundRecord {
  std::string job;
  Round round;
  Decision decision;
  double seconds = 0;  // on the job's clock, since the job's first round here
  int fallbacks = 0, updates = 0;
  int late = 0;  // active workers without a report
};
using OnRecord = std::function<void(RoundRecord)>;

}  // namespace dynamix
