// A job small enough to know the answer: for tests of the loop. Test code only.
//
// Two or more workers of unequal speed; loss falls by a fixed amount per sample, as long as the
// global batch is at most `critical`; iteration time = slowest compute + fixed communication. The
// best policy balances and brings the global batch to `critical`.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dynamix/core/environment.h"

namespace dynamix {

class FakeJob : public Environment {
 public:
  FakeJob(int workers, double critical, double budget_s)
      : workers_(workers), critical_(critical), budget_s_(budget_s) {}

  static constexpr int kStart = 32;
  static constexpr double kCommunicationMs = 40;

  double Speed(int worker) const { return 1 + worker % 3; }

  Round Opening() const override {
    Round round;
    round.base_learning_rate = 0.1;
    round.entries.assign(
        workers_, {.bounds = {.min = 4, .max = 1024}, .start_batch = kStart, .batch = kStart});
    return round;
  }

  Round Start(const std::vector<int>& sizes) override {
    truth_ = {};
    truth_.held_out_loss = 1;
    index_ = 0;
    return Step(sizes);
  }

  Round Step(const std::vector<int>& sizes) override {
    Round round;
    round.index = index_++;
    round.base_learning_rate = 0.1;
    double slowest = 0, global = 0;
    for (int i = 0; i < workers_; ++i) {
      slowest = std::max(slowest, sizes[i] / Speed(i));
      global += sizes[i];
    }
    const double iteration_ms = slowest + kCommunicationMs;
    round.seconds = 20 * iteration_ms / 1000;
    for (int i = 0; i < workers_; ++i) {
      RoundEntry entry;
      entry.bounds = {.min = 4, .max = 1024};
      entry.start_batch = kStart;
      entry.batch = sizes[i];
      Report report;
      report.rank = i;
      report.window = round.index;
      report.iterations = 20;
      report.local_batch = sizes[i];
      report.compute_ms = sizes[i] / Speed(i);
      report.wait_ms = slowest - report.compute_ms;
      report.communication_ms = kCommunicationMs;
      report.iteration_ms = iteration_ms;
      report.training.noise_scale = critical_;
      report.training.loss = truth_.held_out_loss;
      entry.report = report;
      round.entries.push_back(entry);
    }
    truth_.window_seconds = round.seconds;
    truth_.seconds += round.seconds;
    truth_.samples += 20 * global;
    truth_.budget_seconds = budget_s_;
    truth_.held_out_loss -= 20 * std::min(global, critical_) / 1e6;
    truth_.held_out_accuracy = 1 - truth_.held_out_loss;
    truth_.reached = truth_.held_out_loss <= 0.5;
    truth_.out_of_time = truth_.seconds >= budget_s_;
    return round;
  }

  const Truth& truth() const override { return truth_; }

 private:
  int workers_;
  double critical_, budget_s_;
  int index_ = 0;
  Truth truth_;
};

}  // namespace dynamix
