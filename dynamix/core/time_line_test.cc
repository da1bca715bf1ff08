#include "dynamix/core/time_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

constexpr BatchBounds kBounds{.min = 8, .max = 512};

TEST(TimeCurveTest, BalancedWorkersFinishTogether) {
  // b1 + b2 = 300 and 10 + b1 = 20 + 2 b2: b1 = 203.33, both finish after 213.33 ms.
  const TimeCurve curve({{10, 1}, {20, 2}}, {kBounds, kBounds}, 5);
  EXPECT_NEAR(curve.ComputeMs(300), 640 / 3.0, 1e-9);
  EXPECT_NEAR(curve.IterationMs(300), 640 / 3.0 + 5, 1e-9);
}

TEST(TimeCurveTest, BatchesAreFreeWhileTheSlowestSitsAtItsLowest) {
  // The slow worker needs 20 + 10 * 8 = 100 ms for its lowest batch; the fast one does 90 meanwhile.
  const TimeCurve curve({{10, 1}, {20, 10}}, {kBounds, kBounds}, 0);
  EXPECT_NEAR(curve.free_batch(), 98, 1e-9);
  EXPECT_EQ(curve.ComputeMs(16), curve.ComputeMs(98));
  EXPECT_GT(curve.ComputeMs(110), curve.ComputeMs(98));
}

TEST(TimeCurveTest, AWorkerAtItsHighestLeavesTheRestToTheOthers) {
  BatchBounds small = kBounds;
  small.max = 20;
  const TimeCurve curve({{0, 1}, {0, 1}}, {small, kBounds}, 0);
  EXPECT_NEAR(curve.ComputeMs(40), 20, 1e-9);
  EXPECT_NEAR(curve.ComputeMs(100), 80, 1e-9);
  EXPECT_NEAR(curve.ComputeMs(532), 512, 1e-9);
}

TEST(TimeCurveTest, AgreesWithASplitFoundByBruteForce) {
  Rng rng(1);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<ComputeLine> lines;
    std::vector<BatchBounds> bounds;
    double lowest = 0, highest = 0;
    for (int i = 0; i < 5; ++i) {
      lines.push_back({rng.LogUniform(0.1, 20), rng.LogUniform(0.05, 5)});
      const int min = 1 + static_cast<int>(rng.Below(30));
      bounds.push_back({.min = min, .max = min + 10 + static_cast<int>(rng.Below(300))});
      lowest += bounds[i].lowest();
      highest += bounds[i].highest();
    }
    const TimeCurve curve(lines, bounds, 0);
    const double wanted = rng.Uniform(lowest, highest);
    // The shortest time in which the workers together manage `wanted` samples, by bisection.
    double low = 0, high = 1e5;
    for (int step = 0; step < 100; ++step) {
      const double ms = 0.5 * (low + high);
      double done = 0;
      bool possible = true;
      for (int i = 0; i < 5; ++i) {
        possible = possible && lines[i].Ms(bounds[i].lowest()) <= ms;
        done += std::clamp<double>((ms - lines[i].overhead_ms) / lines[i].cost_ms,
                                   bounds[i].lowest(), bounds[i].highest());
      }
      (possible && done >= wanted ? high : low) = ms;
    }
    EXPECT_NEAR(curve.ComputeMs(wanted), high, 1e-6 * high);
  }
}

// Workers with compute = overhead + batch / speed, measured with a relative error.
class Job {
 public:
  explicit Job(std::vector<double> speeds) : speeds_(std::move(speeds)) {
    Rng rng(1);
    round_ = SampleRound(rng, static_cast<int>(speeds_.size()));
  }

  double overhead_ms = 20, error = 0, exchange_ms = 12;

  void Measure(const std::vector<int>& batches) {
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      Report& report = *round_.entries[i].report;
      report.local_batch = round_.entries[i].batch = batches[i];
      report.compute_ms = Ms(i, batches[i]) * std::exp(error * rng_.Normal());
      report.communication_ms = exchange_ms;
    }
    line_.Add(round_);
  }
  void Hold(const std::vector<int>& batches, int rounds) {
    for (int round = 0; round < rounds; ++round) Measure(batches);
  }

  double Ms(std::size_t worker, double batch) const {
    return overhead_ms + batch / speeds_[worker];
  }
  TimeCurve curve() const { return line_.Curve(round_); }
  Round& round() { return round_; }
  std::vector<double>& speeds() { return speeds_; }
  TimeLine& line() { return line_; }

 private:
  std::vector<double> speeds_;
  Round round_;
  Rng rng_{2};
  TimeLine line_;
};

TEST(TimeLineTest, FindsOverheadAndCostOnceBatchesHaveDiffered) {
  Job job({1, 2});
  job.Hold({40, 80}, 3);
  job.Hold({80, 160}, 3);
  // Both need overhead + B / 3.
  EXPECT_NEAR(job.curve().ComputeMs(120), 60, 3);
  EXPECT_NEAR(job.curve().ComputeMs(480), 180, 9);
  EXPECT_NEAR(job.curve().IterationMs(120) - job.curve().ComputeMs(120), 12, 1e-9);
}

TEST(TimeLineTest, AHeldBatchDoesNotForgetTheOverhead) {
  Job job({1, 2});
  job.Hold({40, 80}, 3);
  job.Hold({80, 160}, 3);
  const double before = job.curve().ComputeMs(480);
  job.error = 0.05;
  job.Hold({80, 160}, 200);
  EXPECT_NEAR(job.curve().ComputeMs(480), before, 0.1 * before);
}

TEST(TimeLineTest, OneWindowTellsOnlyWhatIsAssumed) {
  Job job({1});
  job.Measure({80});
  // 100 ms, of which a tenth is taken as overhead.
  EXPECT_NEAR(job.curve().ComputeMs(160), 190, 1e-9);
}

TEST(TimeLineTest, FollowsADeviceThatBecameSlow) {
  Job job({1, 1});
  job.Hold({40, 40}, 3);
  job.Hold({80, 80}, 5);
  job.speeds()[0] = 0.2;
  job.Measure({80, 80});
  // 20 + 5 b1 = 20 + b2 with b1 + b2 = 160. Overhead and cost of a slowed device are not told
  // apart at once, hence the tolerance.
  EXPECT_NEAR(job.curve().ComputeMs(160), 20 + 160 / 1.2, 15);
}

TEST(TimeLineTest, SplitsSoThatAllFinishTogether) {
  Job job({1, 4});
  job.Hold({40, 160}, 3);
  job.Hold({80, 320}, 3);
  // 20 + 100 = 20 + 400 / 4 ms.
  const std::vector<double> split = job.line().Split(job.round(), 500);
  EXPECT_NEAR(split[0], 100, 2);
  EXPECT_NEAR(split[1], 400, 2);
  job.round().entries[1].active = false;
  EXPECT_EQ(job.line().Split(job.round(), 100)[1], 0);
  EXPECT_NEAR(job.line().Split(job.round(), 100)[0], 100, 1e-9);
}

TEST(TimeLineTest, AWrongGuessAtAnotherBatchIsNewsNotAnotherDevice) {
  Job job({1});
  job.overhead_ms = 300;
  job.Measure({20});
  job.Measure({400});  // the line expected 5,800 ms
  EXPECT_NEAR(job.curve().ComputeMs(210), 510, 60);
}

TEST(TimeLineTest, JitterOfManyWorkersAveragesOut) {
  Job job(std::vector<double>(32, 1.0));
  job.error = 0.1;
  Rng rng(3);
  for (int step = 0; step < 60; ++step) {
    const double batch = 80 * std::exp(0.1 * rng.Normal());
    job.Measure(std::vector<int>(32, static_cast<int>(batch)));
  }
  EXPECT_NEAR(job.curve().ComputeMs(32 * 160), 180, 30);
}

TEST(TimeLineTest, AWorkerNobodyMeasuredCountsAsAnAverageOne) {
  Job job({1, 1});
  job.Hold({80, 80}, 2);
  const double two = job.curve().ComputeMs(160);
  job.round().entries.push_back(job.round().entries[0]);
  job.round().entries.back().report.reset();
  EXPECT_NEAR(job.curve().ComputeMs(240), two, 1e-9);
}

TEST(TimeLineTest, IsUnknownUntilSomebodyIsMeasured) {
  Job job({1, 1});
  for (RoundEntry& entry : job.round().entries) entry.report->compute_ms = kMissing;
  job.line().Add(job.round());
  EXPECT_FALSE(job.line().known());
  job.Measure({80, 80});
  EXPECT_TRUE(job.line().known());
}

}  // namespace
}  // namespace dynamix
