// A small closed loop for tests of rules: workers that take `overhead + batch / speed` ms, a rule,
// and nothing else. Test code only.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/policies/make_policy.h"

namespace dynamix {

// A small closed loop: compute = overhead + batch / speed, fixed communication and noise scale.
class Loop {
 public:
  Loop(std::string_view policy, std::vector<double> speeds, int start)
      : policy_(MakePolicy(policy)), speeds_(std::move(speeds)) {
    Rng rng(1);
    round_ = SampleRound(rng, static_cast<int>(speeds_.size()));
    for (RoundEntry& entry : round_.entries) {
      entry.bounds = {.min = 4, .max = 4096};
      entry.batch = entry.start_batch = start;
    }
  }

  std::vector<double> extra_ms;  // a worker's own overhead; empty: none
  double overhead_ms = 0, communication_ms = 10, noise_scale = 500, progress = 0.1;
  int iterations = 10000;  // so far, in every round

  void Run(int rounds) {
    for (int step = 0; step < rounds; ++step) {
      const std::vector<int> sizes = Decide();
      for (std::size_t i = 0; i < sizes.size(); ++i) round_.entries[i].batch = sizes[i];
    }
  }
  // Shows the rule a window at each of these local batches, whatever it decides.
  void Show(const std::vector<int>& batches) {
    for (const int batch : batches) {
      for (RoundEntry& entry : round_.entries) entry.batch = batch;
      Decide();
    }
  }

  double ComputeMs(std::size_t worker) const {
    const double own_ms = extra_ms.empty() ? 0 : extra_ms[worker];
    return overhead_ms + own_ms + round_.entries[worker].batch / speeds_[worker];
  }
  // Slowest over mean compute time.
  double Imbalance() const {
    double slowest = 0, sum = 0;
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      slowest = std::max(slowest, ComputeMs(i));
      sum += ComputeMs(i);
    }
    return slowest / (sum / speeds_.size());
  }

  Round& round() { return round_; }
  std::vector<double>& speeds() { return speeds_; }
  double global_batch() const { return round_.GlobalBatch(); }
  int batch(int worker) const { return round_.entries[worker].batch; }

 private:
  std::vector<int> Decide() {
    double slowest = 0;
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      Report& report = *round_.entries[i].report;
      report.local_batch = round_.entries[i].batch;
      report.compute_ms = ComputeMs(i);
      report.communication_ms = communication_ms;
      report.window = iterations / report.iterations - 1;
      report.training.noise_scale = noise_scale;
      report.training.progress = progress;
      slowest = std::max(slowest, report.compute_ms);
    }
    for (RoundEntry& entry : round_.entries)
      entry.report->iteration_ms = slowest + communication_ms;
    const States states = encoder_.Encode(round_);
    return Apply(round_, states, policy_->Decide(round_, states, rng_), {});
  }

  std::unique_ptr<Policy> policy_;
  std::vector<double> speeds_;
  Round round_;
  Encoder encoder_;
  Rng rng_{2};
};

// The global batch at which a function of it is highest.
template <typename Value>
double BatchOfMost(Value value) {
  double best = 1;
  for (double batch = 1; batch < 20000; batch *= 1.005)
    if (value(batch) > value(best)) best = batch;
  return best;
}

}  // namespace dynamix
