// The rules. Deterministic: none of them uses the random numbers it is offered.
//
// Every constant of a rule is a field of its options, and can be set in the rule's name
// (make_policy.h). An options struct lists its fields once, in Visit: name, field, range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/noise_scale.h"
#include "dynamix/core/policy.h"
#include "dynamix/core/time_line.h"
#include "dynamix/core/time_to_go.h"
#include "dynamix/policies/split.h"

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

struct BalancedOptions {
  // Nobody's batch moves while every worker is within this of its share. OmniLearn uses 20 %, which
  // leaves 20 % of straggling; 5 % is stronger.
  double dead_band = 0.05;

  template <typename Visitor>
  void Visit(Visitor&& visit) {
    visit("dead_band", dead_band, 0.0, 1.0);
  }
};

// Constant global batch B, shares in proportion to measured speed, t_i being compute times:
//
//   b_i := B (b_i / t_i) / sum_j (b_j / t_j)
//
// At its fixed point all t_i are equal, also when they are not proportional to b_i. It is
// OmniLearn's update b_i := b_i - (b_i / t_i) (t_i - mean t) = (b_i / t_i) mean t, scaled so that
// the global batch stays; and it is LB-BSP's idea, shares in proportion to the predicted speed,
// which here is the smoothed speed of the last windows.
class BalancedPolicy : public Policy {
 public:
  explicit BalancedPolicy(const BalancedOptions& options = {}) : options_(options) {}
  std::string_view name() const override { return "balanced"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { global_batch_ = 0; }
  void VisitMemory(Memory& memory) override { memory(global_batch_); }

 private:
  BalancedOptions options_;
  double global_batch_ = 0;  // 0 before the first round
};

// Straight to the job's base batch (its start when it names none), in balanced shares.
class BasePolicy : public Policy {
 public:
  explicit BasePolicy(const BalancedOptions& options = {}) : options_(options) {}
  std::string_view name() const override { return "base"; }
  double OpeningBatch(const Round& round) const override { return BaseBatch(round); }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override {}

 private:
  BalancedOptions options_;
};

struct NoiseScaleOptions {
  double scale = 0.3;      // global batch over noise scale; 1 is the published rule
  double dead_band = 0.1;  // the global batch stays while it is within this of its target
  double step = 1.5;       // largest change of the global batch in a round
  double smoothing = 0.3;  // weight of a new measurement in the noise scale's logarithm
  double shares = 0.05;    // dead band of the shares

  template <typename Visitor>
  void Visit(Visitor&& visit) {
    visit("scale", scale, 0.01, 100.0);
    visit("dead_band", dead_band, 0.0, 1.0);
    visit("step", step, 1.0, 1000.0);
    visit("smoothing", smoothing, 0.01, 1.0);
    visit("shares", shares, 0.0, 1.0);
  }
};

// Global batch = noise scale. Before a noise scale is known it balances.
class NoiseScalePolicy : public Policy {
 public:
  explicit NoiseScalePolicy(const NoiseScaleOptions& options = {})
      : options_(options), noise_(options.smoothing), balanced_({options.shares}) {}
  std::string_view name() const override { return "noise_scale"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { *this = NoiseScalePolicy(options_); }
  void VisitMemory(Memory& memory) override { memory(noise_, global_batch_, balanced_); }

 private:
  NoiseScaleOptions options_;
  NoiseMemory noise_;
  double global_batch_ = 0;
  BalancedPolicy balanced_;
};

struct GoodputOptions {
  double scale = 0.3;       // factor on the noise scale; 1 is the published formula
  double step = 2;          // largest change of the global batch in a round
  double gain = 0.02;       // the global batch stays unless another promises this much more
  double dead_band = 0.05;  // of the shares
  double smoothing = 0.3;   // weight of a new measurement in the noise scale's logarithm
  TimeLineOptions time;

  template <typename Visitor>
  void Visit(Visitor&& visit) {
    visit("scale", scale, 0.01, 100.0);
    visit("step", step, 1.0, 1000.0);
    visit("gain", gain, 0.0, 1.0);
    visit("dead_band", dead_band, 0.0, 1.0);
    visit("smoothing", smoothing, 0.01, 1.0);
    visit("overhead", time.overhead_share, 0.0, 0.95);
  }
};

// Pollux (Qiao et al. 2021, arXiv 2008.12260), with unequal shares; formula in goodput.cc.
class GoodputPolicy : public Policy {
 public:
  explicit GoodputPolicy(const GoodputOptions& options = {})
      : options_(options), noise_(options.smoothing), time_(options.time) {}
  std::string_view name() const override { return "goodput"; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { *this = GoodputPolicy(options_); }
  void VisitMemory(Memory& memory) override { memory(noise_, time_, global_batch_); }

 private:
  GoodputOptions options_;
  NoiseMemory noise_;
  TimeLine time_;
  double global_batch_ = 0;
};

struct CompositeOptions {
  TimeToGoOptions to_go;
  double step = 4;          // largest change of the global batch in a round
  double gain = 0.02;       // the global batch stays unless another promises this much more
  double dead_band = 0.05;  // of the shares
  double smoothing = 0.3;   // weight of a new measurement in the noise scale's logarithm
  TimeLineOptions time;

  template <typename Visitor>
  void Visit(Visitor&& visit) {
    visit("noise", to_go.noise, 0.0, 0.9);
    visit("burn_in", to_go.burn_in, 1.0, 1e6);
    visit("curvature", to_go.curvature, 0.0, 0.09);
    visit("adaptive", to_go.adaptive, 0.0, 0.9);
    visit("horizon", to_go.horizon, 0.0, 1.0);
    visit("step", step, 1.0, 1000.0);
    visit("gain", gain, 0.0, 1.0);
    visit("dead_band", dead_band, 0.0, 1.0);
    visit("smoothing", smoothing, 0.01, 1.0);
    visit("overhead", time.overhead_share, 0.0, 0.95);
  }
};

// The least time to go, under the job's learning-rate rule and schedule; formula in
// core/time_to_go.cc.
// It opens with the base batch, and stays there until a noise scale is known.
class CompositePolicy : public Policy {
 public:
  explicit CompositePolicy(const CompositeOptions& options = {})
      : options_(options), noise_(options.smoothing), time_(options.time) {}
  std::string_view name() const override { return "composite"; }
  double OpeningBatch(const Round& round) const override { return BaseBatch(round); }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  void Reset() override { *this = CompositePolicy(options_); }
  void VisitMemory(Memory& memory) override { memory(noise_, time_, global_batch_); }

 private:
  CompositeOptions options_;
  NoiseMemory noise_;
  TimeLine time_;
  double global_batch_ = 0;
};

}  // namespace dynamix
