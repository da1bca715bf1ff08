// The fields of a report, listed once. Packing, JSON, the wire, the worker's interfaces and the
// clipping of numbers from outside all visit this list:
//
//   VisitFields(report, [](const ReportField& field, auto& value) { ... });
//
// The visitor sees every field in the same order. `value` is an int, std::int64_t, double or
// NetworkTier, and const when the report is. Pure functions; they fail only where a visitor does.
#pragma once

#include <algorithm>

#include "dynamix/core/report.h"
#include "dynamix/core/round.h"

namespace dynamix {

// How a window's number comes from its iterations.
enum class Over {
  kWindow,  // an iteration has no such number: counters, host metrics, deviations
  kMean,    // mean over the iterations
  kLast,    // what the last iteration said
};

struct ReportField {
  const char* section;  // the member of Report that holds it, as "network"; "": Report itself
  const char* name;     // of the member, in JSON and in arbitrator.proto
  double low, high;     // what can be, both included; wide, because clipping must not hide a fault
  Over over;
};

inline constexpr double kDayMs = 86'400'000;
inline constexpr double kLongestRttUs = 120e6;  // TCP gives a segment up after 120 s
inline constexpr double kPetabyte = 1e15;
inline constexpr double kFastestPathMbps = 1e7;  // 10 Tbit/s
// Of losses (which may be negative), gradients and noise scales: far beyond divergence.
inline constexpr double kLargestNorm = 1e12;

// The measurements that are doubles: FIELD(name, low, high, over). Macros, because the generated
// classes of arbitrator.proto have functions named after the fields; everybody else uses the
// functions below.
#define DYNAMIX_TIME_FIELDS(FIELD)            \
  FIELD(iteration_ms, 0, kDayMs, Over::kMean) \
  FIELD(compute_ms, 0, kDayMs, Over::kMean)   \
  FIELD(wait_ms, 0, kDayMs, Over::kMean)      \
  FIELD(communication_ms, 0, kDayMs, Over::kMean)

#define DYNAMIX_NETWORK_FIELDS(FIELD)                     \
  FIELD(bytes_sent, 0, kPetabyte, Over::kWindow)          \
  FIELD(bytes_received, 0, kPetabyte, Over::kWindow)      \
  FIELD(retransmission_ratio, 0, 1, Over::kWindow)        \
  FIELD(smoothed_rtt_us, 0, kLongestRttUs, Over::kWindow) \
  FIELD(minimum_rtt_us, 0, kLongestRttUs, Over::kWindow)  \
  FIELD(delivery_mbps, 0, kFastestPathMbps, Over::kWindow)

#define DYNAMIX_HOST_FIELDS(FIELD)                      \
  FIELD(cpu_use, 0, 1, Over::kWindow)                   \
  FIELD(cpu_throttled, 0, 1, Over::kWindow)             \
  FIELD(cpu_pressure, 0, 1, Over::kWindow)              \
  FIELD(memory_used_bytes, 0, kPetabyte, Over::kWindow) \
  FIELD(memory_limit_bytes, 0, kPetabyte, Over::kWindow)

#define DYNAMIX_TRAINING_FIELDS(FIELD)                        \
  FIELD(loss, -kLargestNorm, kLargestNorm, Over::kMean)       \
  FIELD(accuracy, 0, 1, Over::kMean)                          \
  FIELD(accuracy_spread, 0, 1, Over::kWindow)                 \
  FIELD(gradient_norm, 0, kLargestNorm, Over::kMean)          \
  FIELD(gradient_norm_spread, 0, kLargestNorm, Over::kWindow) \
  FIELD(noise_scale, 0, kLargestNorm, Over::kLast)            \
  FIELD(learning_rate, 0, 1e6, Over::kLast)                   \
  FIELD(progress, 0, 1, Over::kLast)

// Needs `of` (the struct), `section` and `visit` in scope.
#define DYNAMIX_VISIT(member, low, high, over) \
  visit(ReportField{section, #member, low, high, over}, of.member);

// Which report this is. Its receiver knows most of it from elsewhere, and refuses it outside the
// range instead of clipping.
template <typename AnyReport, typename Visit>
constexpr void VisitIdentity(AnyReport& of, Visit&& visit) {
  constexpr const char* section = "";
  DYNAMIX_VISIT(rank, 0, kMaxWorkers - 1, Over::kWindow)
  DYNAMIX_VISIT(window, 0, static_cast<double>(kLargestWindow), Over::kWindow)
  DYNAMIX_VISIT(iterations, 1, kLargestBatch, Over::kWindow)
  DYNAMIX_VISIT(local_batch, 1, kLargestBatch, Over::kWindow)
}

template <typename AnyReport, typename Visit>
constexpr void VisitTimes(AnyReport& of, Visit&& visit) {
  constexpr const char* section = "";
  DYNAMIX_TIME_FIELDS(DYNAMIX_VISIT)
}

template <typename AnyNetworkReport, typename Visit>
constexpr void VisitNetwork(AnyNetworkReport& of, Visit&& visit) {
  constexpr const char* section = "network";
  DYNAMIX_VISIT(tier, 0, static_cast<double>(NetworkTier::kEbpf), Over::kWindow)
  DYNAMIX_NETWORK_FIELDS(DYNAMIX_VISIT)
}

template <typename AnyHostReport, typename Visit>
constexpr void VisitHost(AnyHostReport& of, Visit&& visit) {
  constexpr const char* section = "host";
  DYNAMIX_HOST_FIELDS(DYNAMIX_VISIT)
}

template <typename AnyTrainingReport, typename Visit>
constexpr void VisitTraining(AnyTrainingReport& of, Visit&& visit) {
  constexpr const char* section = "training";
  DYNAMIX_TRAINING_FIELDS(DYNAMIX_VISIT)
}

// What was measured: doubles, missing or in their range, and the tier.
template <typename AnyReport, typename Visit>
constexpr void VisitMeasurements(AnyReport& report, Visit&& visit) {
  VisitTimes(report, visit);
  VisitNetwork(report.network, visit);
  VisitHost(report.host, visit);
  VisitTraining(report.training, visit);
}

template <typename AnyReport, typename Visit>
constexpr void VisitFields(AnyReport& report, Visit&& visit) {
  VisitIdentity(report, visit);
  VisitMeasurements(report, visit);
}

// An entry of a round with its report, which must be there. `active` is a bool.
template <typename AnyEntry, typename Visit>
constexpr void VisitEntry(AnyEntry& entry, Visit&& visit) {
  {
    auto& of = entry;
    constexpr const char* section = "";
    DYNAMIX_VISIT(active, 0, 1, Over::kWindow)
    DYNAMIX_VISIT(start_batch, 1, kLargestBatch, Over::kWindow)
    DYNAMIX_VISIT(batch, 1, kLargestBatch, Over::kWindow)
  }
  {
    auto& of = entry.bounds;
    constexpr const char* section = "bounds";
    DYNAMIX_VISIT(min, 1, kLargestBatch, Over::kWindow)
    DYNAMIX_VISIT(max, 1, kLargestBatch, Over::kWindow)
    DYNAMIX_VISIT(granularity, 1, kLargestBatch, Over::kWindow)
    DYNAMIX_VISIT(dead_band, 0, 1, Over::kWindow)
  }
  VisitFields(*entry.report, visit);
}

#undef DYNAMIX_VISIT

inline constexpr int kEntryFields = [] {
  int count = 0;
  const RoundEntry entry{.report = Report{}};
  VisitEntry(entry, [&](const ReportField&, const auto&) { ++count; });
  return count;
}();

// A measurement as it can be: what is not finite is missing, the rest lies in the field's range.
inline double Clip(double value, double low, double high) {
  return IsMissing(value) ? kMissing : std::clamp(value, low, high);
}

}  // namespace dynamix
