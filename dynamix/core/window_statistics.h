// What a window's iterations say about the training, gathered into a TrainingReport. Used alike by
// live workers, the virtual cluster and miniatures. A value type; never fails.
#pragma once

#include <array>
#include <cmath>

#include "dynamix/core/report.h"

namespace dynamix {

class WindowStatistics {
 public:
  // Means over the samples of one iteration, and the norm of the averaged gradient.
  void Add(double loss, double accuracy, double gradient_norm, double learning_rate) {
    loss_.Add(loss);
    accuracy_.Add(accuracy);
    gradient_norm_.Add(gradient_norm);
    learning_rate_ = learning_rate;
  }

  TrainingReport Make(double noise_scale, double progress) const {
    TrainingReport report;
    report.loss = loss_.mean();
    report.accuracy = accuracy_.mean();
    report.accuracy_spread = accuracy_.spread();
    report.gradient_norm = gradient_norm_.mean();
    report.gradient_norm_spread = gradient_norm_.spread();
    report.noise_scale = noise_scale;
    report.learning_rate = learning_rate_;
    report.progress = progress > 1 ? 1 : progress;  // missing stays missing
    return report;
  }

  // The whole state, for checkpoints inside a window.
  using Numbers = std::array<double, 8>;
  Numbers Save() const {
    return {static_cast<double>(loss_.count),
            loss_.average,
            loss_.squares,
            accuracy_.average,
            accuracy_.squares,
            gradient_norm_.average,
            gradient_norm_.squares,
            learning_rate_};
  }
  void Restore(const Numbers& numbers) {
    const int count = static_cast<int>(numbers[0]);  // the same for all three
    loss_ = {count, numbers[1], numbers[2]};
    accuracy_ = {count, numbers[3], numbers[4]};
    gradient_norm_ = {count, numbers[5], numbers[6]};
    learning_rate_ = numbers[7];
  }

 private:
  // Mean and standard deviation (Welford 1962).
  struct Moments {
    int count = 0;
    double average = 0, squares = 0;
    void Add(double value) {
      ++count;
      const double delta = value - average;
      average += delta / count;
      squares += delta * (value - average);
    }
    double mean() const { return count > 0 ? average : kMissing; }
    double spread() const { return count > 1 ? std::sqrt(squares / count) : kMissing; }
  };

  Moments loss_, accuracy_, gradient_norm_;
  double learning_rate_ = kMissing;
};

}  // namespace dynamix
