#include "dynamix/testbed/pace.h"

#include <gtest/gtest.h>

#include "dynamix/host/job_clock.h"
#include "dynamix/job/timeline.h"

namespace dynamix {
namespace {

constexpr const char* kScenario = R"(
clock = "seconds"
time_budget = 100
[[node]]
speed = 2.0
overhead_ms = 3
jitter = 0.2
[[node]]
speed = 1.0
overhead_ms = 3
[[event]]
kind = "slowdown"
target = "fastest"
share = 0.5
at = 10
duration = 5
factor = 4.0
)";

class PaceTest : public testing::Test {
 protected:
  PaceTest() { workload_.target.accuracy = 0.9; }
  JobSpec Job(std::uint64_t seed) const {
    return {.scenario = scenario_, .workload = workload_, .workers = 2, .seed = seed};
  }
  double MeanMs(int rank, double seconds) {
    Pace pace(Job(7), rank);
    double sum = 0;
    for (int i = 0; i < 4000; ++i) sum += pace.NextMs(32, seconds);
    return sum / 4000;
  }
  Scenario scenario_ = ParseScenario(kScenario, "test");
  Workload workload_;
};

TEST_F(PaceTest, FollowsSpeedOverheadAndSlowdownsOfItsNode) {
  const Cluster quiet(scenario_, workload_.cost, 2);
  EXPECT_NEAR(MeanMs(0, 0), quiet.ComputeMs(0, 32), 0.02 * quiet.ComputeMs(0, 32));
  EXPECT_NEAR(MeanMs(1, 12), quiet.ComputeMs(1, 32), 0.02 * quiet.ComputeMs(1, 32));
  const double slowed = 3 + 4 * (quiet.ComputeMs(0, 32) - 3);
  EXPECT_NEAR(MeanMs(0, 12), slowed, 0.02 * slowed);
  EXPECT_NEAR(MeanMs(0, 15), quiet.ComputeMs(0, 32), 0.02 * quiet.ComputeMs(0, 32));
}

TEST_F(PaceTest, IsTheSameForTheSameSeedAndRank) {
  Pace one(Job(7), 0), same(Job(7), 0);
  Pace other(Job(8), 0);
  const double first = one.NextMs(32, 0);
  EXPECT_EQ(first, same.NextMs(32, 0));
  EXPECT_NE(first, other.NextMs(32, 0));
}

TEST(JobClockTest, IsSeenThroughItsPathAndAnythingElseIsRefused) {
  JobClock clock = std::move(JobClock::Create()).value();
  JobClock other = std::move(JobClock::Open(clock.path())).value();
  other.Set(12.5);
  EXPECT_EQ(clock.seconds(), 12.5);
  EXPECT_FALSE(JobClock::Open("/proc/self/status").ok());
  EXPECT_FALSE(JobClock::Open("/no/such/file").ok());
}

}  // namespace
}  // namespace dynamix
