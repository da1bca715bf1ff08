// What a window's iterations say about the training, gathered into a TrainingReport. Used alike by
// live workers and by the virtual cluster. A value type; never fails.
#pragma once

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
    report.progress = progress < 1 ? progress : 1;
    return report;
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
