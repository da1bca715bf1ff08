// The test kit every Environment passes. Call CheckEnvironment from a TEST with a function that
// makes the same environment anew.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "dynamix/core/environment.h"
#include "dynamix/core/rng.h"

namespace dynamix {

using EnvironmentMaker = std::function<std::unique_ptr<Environment>()>;

namespace conformance {

// Legal sizes around the present ones.
inline std::vector<int> WanderSizes(const Round& round, Rng& rng) {
  std::vector<int> sizes;
  for (const RoundEntry& entry : round.entries)
    sizes.push_back(
        ClampBatch(entry.batch * std::exp2(rng.Uniform(-1, 1)), entry.batch, entry.bounds));
  return sizes;
}

inline void ExpectSameRounds(const Round& a, const Round& b) {
  ASSERT_EQ(a.entries.size(), b.entries.size());
  EXPECT_EQ(a.seconds, b.seconds);
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].batch, b.entries[i].batch);
    EXPECT_EQ(a.entries[i].active, b.entries[i].active);
    ASSERT_EQ(a.entries[i].report.has_value(), b.entries[i].report.has_value());
    if (!a.entries[i].report) continue;
    const Report &x = *a.entries[i].report, &y = *b.entries[i].report;
    EXPECT_EQ(x.compute_ms, y.compute_ms);
    EXPECT_EQ(x.training.loss, y.training.loss);
    if (!IsMissing(x.host.cpu_use)) {
      EXPECT_EQ(x.host.cpu_use, y.host.cpu_use);
    }
  }
}

inline void ExpectWellFormedReport(const RoundEntry& entry, std::size_t rank) {
  const Report& report = *entry.report;
  EXPECT_EQ(report.rank, static_cast<int>(rank));
  EXPECT_GT(report.iterations, 0);
  EXPECT_EQ(report.local_batch, entry.batch);
  EXPECT_GT(report.compute_ms, 0);
  EXPECT_GE(report.wait_ms, 0);
  EXPECT_GE(report.communication_ms, 0);
  EXPECT_NEAR(report.compute_ms + report.wait_ms + report.communication_ms, report.iteration_ms,
              1e-3 * report.iteration_ms);
  const auto share = [](double value) { return IsMissing(value) || (value >= 0 && value <= 1); };
  EXPECT_TRUE(share(report.host.cpu_use));
  EXPECT_TRUE(share(report.host.cpu_throttled));
  EXPECT_TRUE(share(report.host.cpu_pressure));
  EXPECT_TRUE(share(report.network.retransmission_ratio));
  EXPECT_TRUE(share(report.training.accuracy));
  EXPECT_TRUE(share(report.training.progress));
  if (!IsMissing(report.host.memory_used_bytes)) {
    EXPECT_LE(report.host.memory_used_bytes, report.host.memory_limit_bytes);
  }
}

inline void ExpectWellFormedRound(const Round& round) {
  EXPECT_GT(round.seconds, 0);
  EXPECT_TRUE(std::isfinite(round.seconds));
  EXPECT_GE(round.ActiveCount(), 1);
  EXPECT_GT(round.base_learning_rate, 0);
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    entry.bounds.Validate("bounds");
    EXPECT_GT(entry.start_batch, 0);
    EXPECT_GT(entry.batch, 0);
    if (entry.report) ExpectWellFormedReport(entry, i);
  }
}

// A job says what it is before it runs, and runs its first window at what it is told.
inline void CheckOpening(Environment& environment) {
  const Round opening = environment.Opening();
  std::vector<int> sizes = Batches(opening);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const RoundEntry& entry = opening.entries[i];
    EXPECT_EQ(entry.batch, entry.start_batch);
    EXPECT_FALSE(entry.report.has_value());
    sizes[i] = ClampBatch(2.0 * sizes[i], sizes[i], entry.bounds);
  }
  const Round first = environment.Start(sizes);
  ASSERT_EQ(first.entries.size(), sizes.size());
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.rule, opening.rule);
  EXPECT_EQ(IsMissing(first.base_batch), IsMissing(opening.base_batch));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(first.entries[i].start_batch, opening.entries[i].start_batch);
    if (!opening.entries[i].active) continue;
    EXPECT_EQ(first.entries[i].batch, sizes[i]);
  }
  EXPECT_EQ(Batches(environment.Opening()), Batches(opening)) << "whatever has run since";
}

inline void CheckRounds(Environment& environment) {
  Rng rng(1);
  Round round = environment.Reset();
  EXPECT_EQ(round.index, 0);
  for (const RoundEntry& entry : round.entries) EXPECT_EQ(entry.batch, entry.start_batch);
  for (int window = 0; window < 12; ++window) {
    ExpectWellFormedRound(round);
    const double before = environment.truth().seconds;
    const std::vector<int> sizes = WanderSizes(round, rng);
    const Round next = environment.Step(sizes);
    ASSERT_EQ(next.entries.size(), round.entries.size());
    EXPECT_EQ(next.index, round.index + 1);
    EXPECT_NEAR(environment.truth().seconds - before, next.seconds,
                1e-9 * environment.truth().seconds);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!round.entries[i].active) continue;
      EXPECT_EQ(next.entries[i].batch, sizes[i]);
    }
    round = next;
  }
}

inline void CheckDeterminism(const EnvironmentMaker& make) {
  const auto a = make(), b = make();
  Rng rng(2);
  Round x = a->Reset(), y = b->Reset();
  for (int window = 0; window < 6; ++window) {
    ExpectSameRounds(x, y);
    EXPECT_EQ(a->truth().held_out_loss, b->truth().held_out_loss);
    const std::vector<int> sizes = WanderSizes(x, rng);
    x = a->Step(sizes);
    y = b->Step(sizes);
  }
  // Reset starts the same job again.
  y = make()->Reset();
  ExpectSameRounds(a->Reset(), y);
}

inline void CheckIllegalSizes(Environment& environment) {
  Round round = environment.Reset();
  const std::vector<int> huge(round.entries.size(), 1 << 28), negative(round.entries.size(), -5);
  for (const auto& sizes : {huge, negative}) {
    round = environment.Step(sizes);
    for (const RoundEntry& entry : round.entries) EXPECT_GT(entry.batch, 0);
    EXPECT_TRUE(std::isfinite(environment.truth().seconds));
  }
}

inline void CheckTruth(Environment& environment) {
  Round round = environment.Reset();
  bool reached = false, spent = false;
  for (int window = 0; window < 50; ++window) {
    const Truth& truth = environment.truth();
    EXPECT_TRUE(std::isfinite(truth.held_out_loss));
    EXPECT_GE(truth.held_out_accuracy, 0);
    EXPECT_LE(truth.held_out_accuracy, 1);
    EXPECT_FALSE(reached && !truth.reached) << "a target stays reached";
    EXPECT_FALSE(spent && !truth.out_of_time) << "a budget stays spent";
    reached = truth.reached;
    spent = truth.out_of_time;
    round = environment.Step(Batches(round));
  }
}

}  // namespace conformance

inline void CheckEnvironment(const EnvironmentMaker& make) {
  conformance::CheckOpening(*make());
  conformance::CheckRounds(*make());
  conformance::CheckDeterminism(make);
  conformance::CheckIllegalSizes(*make());
  conformance::CheckTruth(*make());
}

}  // namespace dynamix
