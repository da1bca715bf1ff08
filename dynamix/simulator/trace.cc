#include "dynamix/simulator/trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamix/core/report.h"

namespace dynamix {
namespace {

// At the end of each window, averaged over 5 % of the planned samples around it. Losses have the
// other sign: higher is better.
std::vector<double> SmoothQuality(const Trace& trace, bool by_loss) {
  std::vector<double> samples, smooth;
  for (const TracedWindow& window : trace.windows)
    samples.push_back((samples.empty() ? 0 : samples.back()) + window.Samples());
  const double half = 0.025 * trace.job.workload.optimizer.planned_samples;
  for (const double center : samples) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (std::abs(samples[i] - center) > half) continue;
      sum += by_loss ? -trace.windows[i].held_out_loss : trace.windows[i].held_out_accuracy;
      ++count;
    }
    smooth.push_back(sum / count);
  }
  return smooth;
}

bool SameButForTheSeed(const Trace& a, const Trace& b) {
  if (a.job.workers != b.job.workers || a.job.window != b.job.window ||
      a.job.scenario.name != b.job.scenario.name || a.windows.size() != b.windows.size())
    return false;
  for (std::size_t w = 0; w < a.windows.size(); ++w)
    if (a.windows[w].batches != b.windows[w].batches) return false;
  return true;
}

// Over the values that were measured (positive); missing without any.
double Average(const std::vector<const Trace*>& traces, std::size_t window,
               double TracedWindow::*field, bool geometric) {
  double sum = 0, count = 0;
  for (const Trace* trace : traces) {
    const double value = trace->windows[window].*field;
    if (IsMissing(value) || (geometric && value <= 0)) continue;
    sum += geometric ? std::log(value) : value;
    ++count;
  }
  if (count == 0) return kMissing;
  return geometric ? std::exp(sum / count) : sum / count;
}

Trace Mean(const std::vector<const Trace*>& traces) {
  Trace mean = *traces.front();
  for (std::size_t w = 0; w < mean.windows.size(); ++w) {
    TracedWindow& window = mean.windows[w];
    for (const auto field : {&TracedWindow::begin_s, &TracedWindow::seconds,
                             &TracedWindow::held_out_accuracy, &TracedWindow::communication_ms})
      window.*field = Average(traces, w, field, false);
    for (const auto field :
         {&TracedWindow::held_out_loss, &TracedWindow::training_loss, &TracedWindow::noise_scale})
      window.*field = Average(traces, w, field, true);
  }
  return mean;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double TracedWindow::Samples() const {
  return iterations * std::accumulate(batches.begin(), batches.end(), 0.0);
}

double Trace::MedianIterationMs() const {
  std::vector<double> times;
  for (const TracedWindow& window : windows)
    if (window.iterations > 0) times.push_back(1e3 * window.seconds / window.iterations);
  return times.empty() ? 0 : Median(times);
}

double Trace::TimeTo(const TargetOptions& target) const {
  const std::vector<double> smooth = SmoothQuality(*this, target.by_loss());
  const double wanted = target.by_loss() ? -target.loss : target.accuracy;
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    if (smooth[i] < wanted) continue;
    const double end_s = windows[i].begin_s + windows[i].seconds;
    if (i == 0) return end_s;
    // Windows of large batches are long: the moment is between two of them.
    const double begin_s = windows[i - 1].begin_s + windows[i - 1].seconds;
    return begin_s + (end_s - begin_s) * (wanted - smooth[i - 1]) / (smooth[i] - smooth[i - 1]);
  }
  return kMissing;
}

double Trace::Best(bool by_loss) const {
  const std::vector<double> smooth = SmoothQuality(*this, by_loss);
  return std::abs(*std::max_element(smooth.begin(), smooth.end()));
}

std::vector<Trace> AverageSeeds(const std::vector<Trace>& traces) {
  std::vector<Trace> averaged;
  std::vector<bool> taken(traces.size(), false);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (taken[i]) continue;
    std::vector<const Trace*> seeds;
    for (std::size_t j = i; j < traces.size(); ++j) {
      if (taken[j] || !SameButForTheSeed(traces[i], traces[j])) continue;
      taken[j] = true;
      seeds.push_back(&traces[j]);
    }
    averaged.push_back(Mean(seeds));
  }
  return averaged;
}

}  // namespace dynamix
