#include "dynamix/core/make_round.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "dynamix/core/check.h"

namespace dynamix {

Round MakeRound(std::int64_t index, const JobSettings& settings, std::vector<RoundEntry> entries) {
  Round round{settings};
  round.index = index;
  round.entries = std::move(entries);
  for (const RoundEntry& entry : round.entries) {
    if (!entry.report) continue;
    const double own = 1e-3 * entry.report->iteration_ms * entry.report->iterations;
    if (std::isfinite(own)) round.seconds = std::max(round.seconds, own);
  }
  round.seconds = std::clamp(round.seconds, 1e-6, 1e6);
  return round;
}

std::vector<double> PackEntry(const RoundEntry& entry) {
  DYNAMIX_CHECK(entry.report.has_value(), "an entry with its report");
  std::vector<double> packed;
  VisitEntry(entry, [&](const ReportField&, const auto& value) {
    packed.push_back(static_cast<double>(value));
  });
  return packed;
}

RoundEntry UnpackEntry(const double* packed) {
  RoundEntry entry;
  entry.report.emplace();
  VisitEntry(entry, [&](const ReportField&, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(*packed++);
  });
  return entry;
}

}  // namespace dynamix
