// A workload: what is trained. One file of workloads/ drives all backends: `sim` reads costs and
// convergence, `virtual` and `live` read the model, the data set and the optimizer. Format:
// docs/scenarios.md.
//
// Plain values, validated once by LoadWorkload or Validate, which throw InputError naming file,
// line, key, value and allowed range.
#pragma once

#include <string>
#include <variant>

#include "dynamix/job/miniature_options.h"
#include "dynamix/job/optimizer_options.h"
#include "dynamix/job/quadratic_options.h"

namespace dynamix {

class TomlFields;

// Time of one sample against the local batch b, relative to sample_ms:
//
//   factor(b) = (1 + ramp_batch / b) * (1 + spill * x / (1 + x))
//   x         = (b / spill_batch)^2
//
// Throughput rises while b is small against ramp_batch (an idle device), then falls once b passes
// spill_batch (activations leave the cache): up to 1 + spill times slower.
struct SaturationCurve {
  double ramp_batch = 4;     // samples, [0, 1e6]
  double spill_batch = 256;  // samples, (0, 1e9]
  double spill = 0.3;        // [0, 10]

  double Factor(double batch) const {
    const double x = (batch / spill_batch) * (batch / spill_batch);
    return (1 + ramp_batch / batch) * (1 + spill * x / (1 + x));
  }
};

// What one iteration costs.
struct CostOptions {
  double sample_ms = 1;         // forward and backward of one sample on a speed-1 device, (0, 1e6]
  double gradient_bytes = 1e6;  // what one all-reduce carries, [0, 1e12]
  double memory_fixed_bytes = 5e8;       // weights, optimizer, runtime, [0, 1e13]
  double memory_per_sample_bytes = 1e6;  // activations, [0, 1e12]
  double overlap = 0.5;  // share of communication that can hide behind backward, [0, 1]
  SaturationCurve saturation;
};

// What `virtual` and `live` build; ignored by `sim`.
struct ModelOptions {
  std::string name = "lenet";             // lenet, mlp, vgg11, resnet34, transformer, ...
  double width = 1;                       // factor on channel counts, (0, 8]
  std::string dataset = "fashion_mnist";  // fashion_mnist, mnist, cifar10, cifar100, bible, moby
};

// When the job is done. Exactly one is set (> 0).
struct TargetOptions {
  double accuracy = 0;  // held-out accuracy, (0, 1]; 1: of a recorded job that waits for nothing
  double loss = 0;      // held-out loss
  // Share of the reference run, (0, 1]: the held-out loss the reference has by then, at most 99 %
  // of what it gains in all, so that a curve that has gone flat still has a target it can meet.
  double run_share = 0;

  bool by_loss() const { return loss > 0; }
  bool is_named() const { return by_loss() || run_share > 0 || (accuracy > 0 && accuracy < 1); }
};

struct Workload {
  std::string name = "unnamed";  // the file's stem
  std::string description;
  CostOptions cost;
  ModelOptions model;
  OptimizerOptions optimizer;
  std::variant<QuadraticOptions, MiniatureOptions> convergence;
  TargetOptions target;
  // 0: the same job on any number of workers. N > 0 (quadratics only): base batch, planned samples
  // and gradient noise belong to N workers and grow in proportion, as jobs do that are moved to
  // larger clusters.
  int scales_with_workers = 0;

  bool is_quadratic() const { return std::holds_alternative<QuadraticOptions>(convergence); }
  void Validate() const;
  // This workload on `workers` workers (see scales_with_workers).
  Workload OnWorkers(int workers) const;
};

// What rounds repeat of it.
JobSettings SettingsOf(const Workload& workload);

void VisitFields(TomlFields& fields, Workload& workload);
Workload LoadWorkload(const std::string& path);
Workload ParseWorkload(std::string_view text, const std::string& source);
std::string FormatWorkload(const Workload& workload);

}  // namespace dynamix
