#include "dynamix/rpc/advised_worker.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "dynamix/core/input_error.h"
#include "dynamix/core/report_fields.h"

namespace dynamix {
namespace {

const AdvisedWorkerOptions& Validated(const AdvisedWorkerOptions& options) {
  options.bounds.Validate("bounds");
  RequireInRange("start_batch", options.start_batch, options.bounds.min, options.bounds.max);
  RequireInRange("window_iterations", options.window_iterations, 1, 1000000);
  return options;
}

// Position in VisitIteration; -1: not a field of an iteration.
constexpr int IterationIndex(std::string_view name) {
  int index = -1, next = 0;
  VisitIteration([&](const char* own) {
    if (own == name) index = next;
    ++next;
  });
  return index;
}

constexpr bool ReportsEveryIterationField() {
  int count = 0;
  bool found = true;
  const Report report{};
  VisitMeasurements(report, [&](const ReportField& field, const auto&) {
    if (field.over == Over::kWindow) return;
    found = found && IterationIndex(field.name) >= 0;
    ++count;
  });
  return found && count == kIterationFields;
}
static_assert(ReportsEveryIterationField(),
              "what report_fields.h takes from iterations is what VisitIteration lists");

}  // namespace

void AdvisedWorker::Mean::Add(double value) {
  if (IsMissing(value)) return;
  sum += value;
  ++count;
}

AdvisedWorker::AdvisedWorker(const AdvisedWorkerOptions& options)
    : options_(Validated(options)), advisor_(options.advisor), batch_(options.start_batch) {
  const std::optional<int> opening =
      advisor_
          .Open({.bounds = options_.bounds, .start_batch = batch_, .batch = batch_, .report = {}},
                /*job_start=*/0)
          .value();
  // Only a smaller batch: nobody knows yet what memory holds.
  if (opening) batch_ = std::min(batch_, *opening);
}

int AdvisedWorker::EndIteration(const IterationStats& stats) {
  ++window_.iterations;
  auto mean = window_.means.begin();
  VisitIteration([&](const char*, double value) { (mean++)->Add(value); }, stats);
  if (window_.iterations == options_.window_iterations) {
    Submit(stats);
    window_ = {};
    return batch_;
  }
  const Answer answer = advisor_.Poll();
  if (!answer.batch) return batch_;
  const int next = ClampBatch(*answer.batch, batch_, options_.bounds);
  if (next != batch_) window_ = {};  // a window's numbers belong to one batch
  return batch_ = next;
}

void AdvisedWorker::Submit(const IterationStats& last) {
  RoundEntry entry{.bounds = options_.bounds, .start_batch = options_.start_batch, .batch = batch_};
  Report& report = entry.report.emplace();
  report.rank = options_.advisor.rank;
  report.window = windows_;
  report.iterations = window_.iterations;
  report.local_batch = batch_;
  std::array<double, kIterationFields> lasts;
  VisitIteration([next = lasts.begin()](const char*, double value) mutable { *next++ = value; },
                 last);
  VisitMeasurements(report, [&](const ReportField& field, auto& value) {
    if constexpr (std::is_same_v<decltype(value), double&>) {
      if (field.over == Over::kWindow) return;
      const int index = IterationIndex(field.name);
      value = field.over == Over::kMean ? window_.means[index].value() : lasts[index];
    }
  });
  if (options_.measure) options_.measure(report);
  (void)advisor_.Submit(windows_++, entry);  // never fails
}

}  // namespace dynamix
