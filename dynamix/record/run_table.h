// A run as a table for other programs: comma-separated values (RFC 4180), one row per round and
// worker, every column named. What was not measured is empty.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "dynamix/record/run_record.h"

namespace dynamix {

// run, policy, seed, round, seconds, ..., worker, batch, size, every field of a report
// ("network.smoothed_rtt_us"), the team's state and the worker's ("team_state.noise_ratio").
std::vector<std::string> TableColumns();

// The rows of a run; how many.
std::int64_t WriteRows(const RunRecord& run, std::ostream& out);

// A line of cells, quoted where the format asks for it.
void WriteRow(const std::vector<std::string>& cells, std::ostream& out);

}  // namespace dynamix
