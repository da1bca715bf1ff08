// The rules. Deterministic: none of them uses the random numbers it is offered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/policy.h"

namespace dynamix {

// Holds, or gives every worker the same fixed batch.
class StaticPolicy : public Policy {
 public:
  explicit StaticPolicy(std::optional<int> batch = std::nullopt);
  std::string_view name() const override { return name_; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override {}

 private:
  std::optional<int> batch_;
  std::string name_;
};

// Constant global batch B, shares in proportion to measured speed, t_i being compute times:
//
//   b_i := B * (b_i / t_i) / sum_j (b_j / t_j)
//
// At its fixed point all t_i are equal, also when they are not proportional to b_i. Moves only when
// some worker is more than `dead_band` off its share (OmniLearn uses 20 %, which leaves 20 % of
// straggling; 5 % is stronger).
class BalancedPolicy : public Policy {
 public:
  explicit BalancedPolicy(double dead_band = 0.05) : dead_band_(dead_band) {}
  std::string_view name() const override { return "balanced"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { global_batch_ = 0; }

 private:
  double dead_band_;
  double global_batch_ = 0;  // 0 before the first round
};

// Global batch = noise scale, approached by at most `largest_step` per round and left alone while
// it is within `dead_band` of its target. Before a noise scale is known it balances.
class NoiseScalePolicy : public Policy {
 public:
  std::string_view name() const override { return "noise_scale"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { *this = NoiseScalePolicy(); }

 private:
  double dead_band_ = 0.1;
  double largest_step_ = 1.5;
  double log_noise_ = kMissing;  // smoothed log2 of the noise scale
  double global_batch_ = 0;
  BalancedPolicy balanced_;
};

// Pollux (Qiao et al. 2021, arXiv 2008.12260), with unequal shares:
//
//   t_i(b)     = overhead_i + cost_i * b                  fitted to the worker's recent windows
//   goodput(B) = B / (max_i t_i(b_i) + communication)     samples per second
//              * (noise + B_0) / (noise + B)              how much a sample teaches
//
// with the exposed communication time as measured, B_0 the start global batch, and b_i chosen so
// that all t_i are equal. The best B on a geometric grid within a factor of `largest_step` of the
// current one is taken when it promises `smallest_gain` more.
class GoodputPolicy : public Policy {
 public:
  std::string_view name() const override { return "goodput"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { *this = GoodputPolicy(); }

 private:
  // Weighted sums of recent (batch, compute time) pairs of one worker.
  struct Line {
    double weight = 0, b = 0, t = 0, bb = 0, bt = 0;
    void Add(double batch, double compute_ms);
    double cost() const;      // ms per sample, > 0 once something was added
    double overhead() const;  // ms, >= 0
  };
  void Learn(const Round& round);
  std::vector<double> Shares(const Round& round, double global_batch) const;
  double Goodput(const Round& round, double global_batch, double noise) const;

  double largest_step_ = 2;
  double smallest_gain_ = 0.02;
  double dead_band_ = 0.05;
  std::vector<Line> lines_;
  double communication_ms_ = kMissing;
  double log_noise_ = kMissing;
  double start_batch_ = 0;
  double global_batch_ = 0;
};

}  // namespace dynamix
