// The contract every Policy keeps, as a test kit: bounds respected, no flapping on constant input,
// missing and hostile metrics survived, determinism, 1 to 1,024 workers. Test code only.
//
//   INSTANTIATE_TEST_SUITE_P(Rules, PolicyConformance, testing::Values(MakeCase("balanced"), ...));
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/testing/sample_round.h"

namespace dynamix {

struct PolicyCase {
  std::string name;
  std::function<std::unique_ptr<Policy>()> make;
  ActionOptions actions = {};
};

inline void PrintTo(const PolicyCase& policy_case, std::ostream* out) { *out << policy_case.name; }

class PolicyConformance : public testing::TestWithParam<PolicyCase> {
 protected:
  // One round through encoder, policy and Apply: the new batches.
  static std::vector<int> Step(const Round& round, Encoder& encoder, Policy& policy, Rng& rng) {
    const States states = encoder.Encode(round);
    return Apply(round, states, policy.Decide(round, states, rng), GetParam().actions);
  }

  // What the workers would measure at their batches: compute time proportional to batch over speed.
  static void Measure(Round& round, const std::vector<double>& speeds) {
    double slowest = 0;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      Report& report = *round.entries[i].report;
      report.local_batch = round.entries[i].batch;
      report.compute_ms = 2 + round.entries[i].batch / speeds[i];
      slowest = std::max(slowest, report.compute_ms);
    }
    for (RoundEntry& entry : round.entries) {
      entry.report->wait_ms = slowest - entry.report->compute_ms;
      entry.report->iteration_ms = slowest + entry.report->communication_ms;
    }
    ++round.index;
  }
};

TEST_P(PolicyConformance, StaysInsideTheBoundsWhateverItSees) {
  Rng rng(1);
  for (int trial = 0; trial < 40; ++trial) {
    const auto policy = GetParam().make();
    Encoder encoder;
    const int workers = 1 + static_cast<int>(rng.Below(12));
    for (int step = 0; step < 8; ++step) {
      Round round = SampleRound(rng, workers);
      for (RoundEntry& entry : round.entries) {
        const double odd[] = {kMissing, HUGE_VAL, -3, 0, 1e200};
        Report& r = *entry.report;
        for (double* field :
             {&r.compute_ms, &r.wait_ms, &r.iteration_ms, &r.communication_ms, &r.training.loss,
              &r.training.accuracy, &r.training.noise_scale, &r.training.learning_rate,
              &r.host.cpu_use, &r.network.delivery_mbps, &r.network.smoothed_rtt_us})
          if (rng.Uniform() < 0.3) *field = odd[rng.Below(5)];
        if (rng.Uniform() < 0.2) entry.report.reset();
        if (rng.Uniform() < 0.2) entry.active = false;
      }
      const std::vector<int> sizes = Step(round, encoder, *policy, rng);
      for (int i = 0; i < workers; ++i) {
        if (!round.entries[i].active) {
          EXPECT_EQ(sizes[i], round.entries[i].batch);
          continue;
        }
        EXPECT_GE(sizes[i], round.entries[i].bounds.min);
        EXPECT_LE(sizes[i], round.entries[i].bounds.max);
      }
    }
  }
}

TEST_P(PolicyConformance, SurvivesRoundsInWhichNobodyReported) {
  Rng rng(2);
  const auto policy = GetParam().make();
  Encoder encoder;
  Round round = SampleRound(rng, 4);
  for (RoundEntry& entry : round.entries) entry.report.reset();
  for (int step = 0; step < 5; ++step) {
    const std::vector<int> sizes = Step(round, encoder, *policy, rng);
    for (int i = 0; i < 4; ++i) round.entries[i].batch = sizes[i];
  }
}

TEST_P(PolicyConformance, DoesNotFlapOnAConstantCluster) {
  Rng rng(3);
  const auto policy = GetParam().make();
  Encoder encoder;
  const std::vector<double> speeds = {1, 2, 4, 1.5};
  Round round = SampleRound(rng, 4);
  for (RoundEntry& entry : round.entries) entry.batch = entry.start_batch = 64;
  int reversals = 0;
  double last_direction = 0;
  for (int step = 0; step < 200; ++step) {
    Measure(round, speeds);
    const double before = round.GlobalBatch();
    const std::vector<int> sizes = Step(round, encoder, *policy, rng);
    for (int i = 0; i < 4; ++i) round.entries[i].batch = sizes[i];
    const double change = round.GlobalBatch() / before - 1;
    if (step < 50 || std::abs(change) < 0.02) continue;
    reversals += change * last_direction < 0 ? 1 : 0;
    last_direction = change;
  }
  EXPECT_LE(reversals, 2) << "the global batch changed direction while nothing changed";
}

TEST_P(PolicyConformance, IsDeterministic) {
  const auto trace = [] {
    Rng rng(4), choices(5);
    const auto policy = GetParam().make();
    Encoder encoder;
    std::vector<int> all;
    for (int step = 0; step < 20; ++step) {
      const std::vector<int> sizes = Step(SampleRound(rng, 5), encoder, *policy, choices);
      all.insert(all.end(), sizes.begin(), sizes.end());
    }
    return all;
  };
  EXPECT_EQ(trace(), trace());
}

TEST_P(PolicyConformance, ResetMakesItNew) {
  Rng rng(6), choices(7);
  const auto used = GetParam().make(), fresh = GetParam().make();
  Encoder used_encoder, fresh_encoder;
  for (int step = 0; step < 10; ++step) Step(SampleRound(rng, 6), used_encoder, *used, choices);
  used->Reset();
  used_encoder.Reset();
  Rng a(8), b(8);
  for (int step = 0; step < 10; ++step) {
    const Round round = SampleRound(rng, 3);
    EXPECT_EQ(Step(round, used_encoder, *used, a), Step(round, fresh_encoder, *fresh, b));
  }
}

TEST_P(PolicyConformance, GoesOnFromItsMemoryAsIfNeverStopped) {
  Rng rng(10), choices(11);
  const auto used = GetParam().make(), resumed = GetParam().make();
  Encoder used_encoder, resumed_encoder;
  std::size_t size = 0;
  for (int step = 0; step < 40; ++step) {
    Step(SampleRound(rng, 4), used_encoder, *used, choices);
    if (step % 20 != 19) continue;
    Memory written;
    written(*used, used_encoder);
    EXPECT_TRUE(size == 0 || size == written.numbers().size()) << "as long as before";
    size = written.numbers().size();
    Memory read(written.numbers());
    read(*resumed, resumed_encoder);
    read.ExpectEnd();
  }
  Rng a(12), b(12);
  for (int step = 0; step < 20; ++step) {
    const Round round = SampleRound(rng, 4);
    EXPECT_EQ(Step(round, used_encoder, *used, a), Step(round, resumed_encoder, *resumed, b));
  }
}

TEST_P(PolicyConformance, ServesOneToAThousandWorkers) {
  Rng rng(9);
  for (int workers : {1, 2, 32, 128, 1024}) {
    const auto policy = GetParam().make();
    Encoder encoder;
    for (int step = 0; step < 3; ++step) {
      const std::vector<int> sizes = Step(SampleRound(rng, workers), encoder, *policy, rng);
      EXPECT_EQ(static_cast<int>(sizes.size()), workers);
    }
  }
}

TEST_P(PolicyConformance, KeepsWorkingWhenWorkersLeaveAndJoin) {
  Rng rng(10);
  const auto policy = GetParam().make();
  Encoder encoder;
  Round round = SampleRound(rng, 6);
  for (int step = 0; step < 30; ++step) {
    for (int i = 0; i < 6; ++i) round.entries[i].active = (step / 5 + i) % 4 != 0;
    const std::vector<int> sizes = Step(round, encoder, *policy, rng);
    for (int i = 0; i < 6; ++i) round.entries[i].batch = sizes[i];
  }
}

}  // namespace dynamix
