// Rounds for tests: plausible, complete, seeded. Test code only.
#pragma once

#include <algorithm>

#include "dynamix/core/rng.h"
#include "dynamix/core/round.h"

namespace dynamix {

// `workers` workers of unequal speed, all measurements present.
inline Round SampleRound(Rng& rng, int workers) {
  Round round;
  round.seconds = 2;
  round.rule = LearningRateRule::kAdaScale;
  round.base_learning_rate = 0.1;
  round.base_batch = 256;
  round.target_accuracy = 0.9;
  double slowest = 0;
  for (int i = 0; i < workers; ++i) {
    RoundEntry entry;
    entry.bounds = {.min = 8, .max = 512};
    entry.start_batch = 64;
    entry.batch = 16 + static_cast<int>(rng.Below(200));
    Report report;
    report.rank = i;
    report.iterations = 20;
    report.local_batch = entry.batch;
    report.compute_ms = entry.batch * rng.LogUniform(0.1, 0.8) + 3;
    slowest = std::max(slowest, report.compute_ms);
    report.communication_ms = 12;
    report.network = {.tier = NetworkTier::kEbpf,
                      .bytes_sent = 1e7,
                      .bytes_received = 1e7,
                      .retransmission_ratio = rng.Uniform(0, 0.1),
                      .smoothed_rtt_us = rng.Uniform(300, 900),
                      .minimum_rtt_us = 200,
                      .delivery_mbps = rng.Uniform(50, 900)};
    report.host = {.cpu_use = rng.Uniform(),
                   .cpu_throttled = rng.Uniform(0, 0.2),
                   .cpu_pressure = rng.Uniform(0, 0.3),
                   .memory_used_bytes = rng.Uniform(1e9, 3e9),
                   .memory_limit_bytes = 4e9};
    report.training = {.loss = 1.2,
                       .accuracy = 0.6,
                       .accuracy_spread = 0.04,
                       .gradient_norm = 2,
                       .gradient_norm_spread = 0.5,
                       .noise_scale = 700,
                       .learning_rate = 0.05,
                       .progress = 0.3};
    entry.report = report;
    round.entries.push_back(entry);
  }
  for (RoundEntry& entry : round.entries) {
    entry.report->wait_ms = slowest - entry.report->compute_ms;
    entry.report->iteration_ms = slowest + entry.report->communication_ms;
  }
  return round;
}

}  // namespace dynamix
