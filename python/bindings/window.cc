// The windows of all ranks of a Python job, joined to the entries of a round.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dynamix/core/input_error.h"
#include "dynamix/core/make_round.h"
#include "dynamix/core/noise_scale.h"
#include "dynamix/core/round.h"
#include "dynamix/core/window_statistics.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

// Of a rank's table, one row per iteration; dynamix/torch/_window.py fills it.
enum Column : int {
  kSamples,
  kCompute,
  kExchange,
  kWeightedSquare,
  kAveragedSquare,
  kLoss,
  kLossSamples,
  kAccuracy,
  kAccuracySamples,
  kRate,
  kColumns
};

// What each rank sent: its packed entry, then its table.
class Windows {
 public:
  Windows(const Numbers& sent, int iterations) : sent_(sent), iterations_(iterations) {
    const py::ssize_t length = kEntryFields + std::int64_t{iterations} * kColumns;
    if (sent.ndim() != 2 || sent.shape(1) != length || iterations < 1)
      throw InputError::OutOfRange("windows", std::to_string(sent.size()) + " numbers",
                                   std::to_string(length) + " of each rank");
  }
  int ranks() const { return static_cast<int>(sent_.shape(0)); }
  int iterations() const { return iterations_; }
  const double* entry(int rank) const { return sent_.data(rank, 0); }
  double at(int rank, int iteration, Column column) const {
    return entry(rank)[kEntryFields + iteration * kColumns + column];
  }
  double sum(int iteration, Column column) const {
    double sum = 0;
    for (int rank = 0; rank < ranks(); ++rank) sum += at(rank, iteration, column);
    return sum;
  }

 private:
  const Numbers& sent_;  // the caller's, for the length of the call
  int iterations_;
};

// Per iteration, over the ranks that said something; iterations without a word get the mean of the
// others.
std::vector<double> Means(const Windows& windows, Column value, Column count) {
  std::vector<double> means;
  double known = 0, sum = 0;
  for (int i = 0; i < windows.iterations(); ++i) {
    const double samples = windows.sum(i, count);
    means.push_back(samples > 0 ? windows.sum(i, value) / samples : kMissing);
    if (samples > 0) ++known;
    if (samples > 0) sum += means.back();
  }
  for (int i = 0; i < windows.iterations(); ++i)
    if (!(windows.sum(i, count) > 0)) means[i] = known > 0 ? sum / known : kMissing;
  return means;
}

TrainingReport Training(const Windows& windows, NoiseScale& noise_scale, double progress) {
  WindowStatistics statistics;
  const std::vector<double> losses = Means(windows, kLoss, kLossSamples),
                            accuracies = Means(windows, kAccuracy, kAccuracySamples);
  for (int i = 0; i < windows.iterations(); ++i) {
    const double square = windows.sum(i, kAveragedSquare);
    statistics.Add(losses[i], accuracies[i], std::sqrt(square), windows.at(0, i, kRate));
    noise_scale.Add(EstimateNoise(windows.sum(i, kWeightedSquare), square, windows.sum(i, kSamples),
                                  windows.ranks()));
  }
  return statistics.Make(noise_scale.value(), progress);
}

// A rank waits from its last gradient until the slowest rank has its own; iterations begin together,
// with the end of the exchange before.
std::vector<RoundEntry> Join(const Numbers& sent, int iterations, NoiseScale& noise_scale,
                             double progress) {
  const Windows windows(sent, iterations);
  std::vector<double> slowest(iterations, -std::numeric_limits<double>::infinity());
  for (int rank = 0; rank < windows.ranks(); ++rank)
    for (int i = 0; i < iterations; ++i)
      slowest[i] = std::max(slowest[i], windows.at(rank, i, kCompute));
  const TrainingReport training = Training(windows, noise_scale, progress);
  std::vector<RoundEntry> entries;
  for (int rank = 0; rank < windows.ranks(); ++rank) {
    RoundEntry entry = UnpackEntry(windows.entry(rank));
    double compute = 0, exchange = 0, wait = 0;
    for (int i = 0; i < iterations; ++i) {
      compute += windows.at(rank, i, kCompute) / iterations;
      exchange += windows.at(rank, i, kExchange) / iterations;
      wait += std::min(slowest[i] - windows.at(rank, i, kCompute), windows.at(rank, i, kExchange)) /
              iterations;
    }
    Report report = entry.report.value_or(Report{});
    report.rank = rank;
    report.iterations = iterations;
    report.local_batch = entry.batch;
    report.iteration_ms = compute + exchange;
    report.compute_ms = compute;
    report.wait_ms = wait;
    report.communication_ms = exchange - wait;
    report.training = training;
    entry.report = report;
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

void BindWindow(py::module_& module) {
  module.def("join_windows", &Join, py::arg("windows"), py::arg("iterations"),
             py::arg("noise_scale"), py::arg("progress"),
             "Entries of a round, one per row: a rank's packed entry, then its table of "
             "iterations. The noise scale gets each iteration's estimate.");
}

}  // namespace dynamix
