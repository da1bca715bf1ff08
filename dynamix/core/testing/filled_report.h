// Reports and entries with another legal value in every field, and their fields as named numbers:
// what a test needs to see that a copy lost nothing. Test code only.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dynamix/core/report_fields.h"

namespace dynamix {

inline Report FilledReport() {
  Report report;
  int number = 0;
  VisitFields(report, [&](const ReportField& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    ++number;
    if constexpr (std::is_same_v<Value, NetworkTier>)
      value = NetworkTier::kInetDiag;
    else if constexpr (std::is_integral_v<Value>)
      value = 100 + number;
    else
      value = field.low + (field.high - field.low) * number / (kEntryFields + 1);
  });
  return report;
}

// Its batch is the report's.
inline RoundEntry FilledEntry() {
  RoundEntry entry;
  entry.bounds = {.min = 3, .max = 300, .granularity = 2, .dead_band = 0.125};
  entry.start_batch = 6;
  entry.report = FilledReport();
  entry.batch = entry.report->local_batch;
  return entry;
}

using NamedNumbers = std::vector<std::pair<std::string, double>>;

namespace filled_report_internal {
inline auto AppendTo(NamedNumbers& numbers) {
  return [&numbers](const ReportField& field, const auto& value) {
    numbers.emplace_back(std::string(field.section) + "." + field.name, static_cast<double>(value));
  };
}
}  // namespace filled_report_internal

inline NamedNumbers FieldsOf(const Report& report) {
  NamedNumbers numbers;
  VisitFields(report, filled_report_internal::AppendTo(numbers));
  return numbers;
}
inline NamedNumbers FieldsOf(const RoundEntry& entry) {
  NamedNumbers numbers;
  VisitEntry(entry, filled_report_internal::AppendTo(numbers));
  return numbers;
}

}  // namespace dynamix
