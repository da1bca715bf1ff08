// The gradient noise scale (McCandlish et al. 2018, arXiv 1812.06162), from gradients a
// data-parallel job has anyway, unbiased when workers have unequal batches.
//
// Worker i averages b_i samples into g_i; the job's gradient is g = sum_i (b_i / B) g_i. With true
// gradient G and per-sample covariance S:
//   E|g_i|^2 = |G|^2 + tr(S) / b_i          E|g|^2 = |G|^2 + tr(S) / B
// so, over N workers,
//   tr(S) ~ B / (N - 1) * (sum_i (b_i / B) |g_i|^2 - |g|^2)       never negative (Jensen)
//   |G|^2 ~ |g|^2 - tr(S) / B                                    may be negative in one iteration
// Both are unbiased; their ratio tr(S) / |G|^2 is the noise scale in samples. Numerator and
// denominator are smoothed apart, because the mean of a ratio is not the ratio of means.
#pragma once

#include <span>
#include <vector>

#include "dynamix/core/memory.h"
#include "dynamix/core/round.h"

namespace dynamix {

// What one iteration says about the noise.
struct GradientNoise {
  double trace = kMissing;         // tr(S), >= 0
  double squared_norm = kMissing;  // |G|^2, possibly negative
};

// `weighted_squared_norms` = sum_i b_i |g_i|^2 over the workers that had samples: the one number an
// all-reduce must carry. Missing when fewer than two workers had samples or an input is not finite.
GradientNoise EstimateNoise(double weighted_squared_norms, double squared_norm, double global_batch,
                            int workers);
// The same from each worker's batch and |g_i|^2. Workers with batch 0 are left out.
GradientNoise EstimateNoise(std::span<const double> batches, std::span<const double> squared_norms,
                            double squared_norm);

// Sample counts of at most `most` groups of consecutive workers that have samples, at least one:
// fewer gradients to keep apart. A group is a larger worker, so the estimate stays unbiased.
std::vector<int> GroupWorkers(std::span<const int> batches, int most);

// Exponential averages of both parts, corrected for their start.
class NoiseScale {
 public:
  // `memory`: weight of the past per update, [0, 1).
  explicit NoiseScale(double memory = 0.95) : memory_(memory) {}

  void Add(const GradientNoise& noise);
  // In samples; missing before the first estimate or while the smoothed |G|^2 is not positive.
  double value() const;

 private:
  double memory_;
  double trace_ = 0, squared_norm_ = 0, weight_ = 0;
};

// The noise scale that workers report, averaged over them and smoothed over rounds, in logarithms.
class NoiseMemory {
 public:
  explicit NoiseMemory(double weight) : weight_(weight) {}  // weight: of a new round, (0, 1]
  void Add(const Round& round);
  // In samples; missing before anybody reported one.
  double value() const;
  void VisitMemory(Memory& memory) { memory(log2_); }

 private:
  double weight_;
  double log2_ = kMissing;
};

}  // namespace dynamix
