// Rounds of a live job from what its workers measured. Pure functions; an entry without a report is
// a bug where it is packed (CheckFailure).
#pragma once

#include <cstdint>
#include <vector>

#include "dynamix/core/report_fields.h"
#include "dynamix/core/round.h"

namespace dynamix {

// `seconds` is the length of the longest window that an entry reports, [1e-6, 1e6].
Round MakeRound(std::int64_t index, const JobSettings& settings, std::vector<RoundEntry> entries);

// One worker's part of a round as numbers, for the gathering of reports. Exact both ways.
inline constexpr int kPackedEntry = kEntryFields;
std::vector<double> PackEntry(const RoundEntry& entry);
// `packed` holds kPackedEntry numbers.
RoundEntry UnpackEntry(const double* packed);

}  // namespace dynamix
