#include "dynamix/rpc/round_gate.h"

#include <gtest/gtest.h>

namespace dynamix {
namespace {

using Arrival = RoundGate::Arrival;

SteadyTime At(double seconds) {
  return SteadyTime{} + std::chrono::milliseconds(static_cast<int>(1000 + 1000 * seconds));
}

RoundEntry EntryAt(int batch) {
  RoundEntry entry{.bounds = {.min = 1, .max = 100}, .start_batch = batch, .batch = batch};
  Report& report = entry.report.emplace();
  report.iterations = 10;
  report.iteration_ms = 50;
  return entry;
}

class RoundGateTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(gate_.Join(rank, 7, 0, At(0)));
  }
  // Everybody reports `window`.
  Round Whole(std::int64_t window, double when) {
    for (int rank = 0; rank < 3; ++rank) gate_.Add(rank, 7, window, EntryAt(8), At(when));
    EXPECT_TRUE(gate_.Complete(At(when)));
    return gate_.Close({}, At(when));
  }

  RoundGate gate_{3, {.lease_s = 10, .round_deadline_s = 1}};
};

TEST_F(RoundGateTest, ClosesWhenEverybodyReported) {
  EXPECT_EQ(gate_.Add(0, 7, 0, EntryAt(8), At(0)), Arrival::kWaits);
  EXPECT_EQ(gate_.Add(1, 7, 0, EntryAt(9), At(0)), Arrival::kWaits);
  EXPECT_FALSE(gate_.Complete(At(0.5)));
  EXPECT_EQ(gate_.Add(2, 7, 0, EntryAt(10), At(0.5)), Arrival::kWaits);
  ASSERT_TRUE(gate_.Complete(At(0.5)));
  const Round round = gate_.Close({.schedule = Schedule::kCosine, .base_batch = 24}, At(0.5));
  EXPECT_EQ(round.schedule, Schedule::kCosine);
  EXPECT_EQ(round.index, 0);
  EXPECT_EQ(round.GlobalBatch(), 27);
  EXPECT_DOUBLE_EQ(round.seconds, 0.5);
  EXPECT_EQ(round.base_batch, 24);
}

TEST_F(RoundGateTest, MasksALateWorkerAfterTheDeadline) {
  Whole(0, 0);
  gate_.Add(0, 7, 1, EntryAt(8), At(1));
  gate_.Add(2, 7, 1, EntryAt(8), At(1));
  EXPECT_FALSE(gate_.Complete(At(1.9)));
  ASSERT_TRUE(gate_.Complete(At(2)));
  const Round round = gate_.Close({}, At(2));
  EXPECT_TRUE(round.entries[1].active);
  EXPECT_FALSE(round.entries[1].report.has_value());
  EXPECT_EQ(round.entries[1].batch, 8);
  EXPECT_EQ(gate_.Add(1, 7, 1, EntryAt(8), At(2.1)), Arrival::kAnswered);
}

TEST_F(RoundGateTest, DoesNotWaitForAWorkerWhoseLeaseEnded) {
  Whole(0, 0);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(gate_.Join(rank, 7, 1, At(9))) << "renewals";
  gate_.Add(0, 7, 1, EntryAt(8), At(11));
  gate_.Add(1, 7, 1, EntryAt(8), At(11));
  ASSERT_TRUE(gate_.Complete(At(11)));
  const Round round = gate_.Close({}, At(11));
  EXPECT_EQ(round.ActiveCount(), 2);
  EXPECT_FALSE(round.entries[2].active);
}

TEST_F(RoundGateTest, DoesNotWaitForAWorkerThatLeft) {
  Whole(0, 0);
  gate_.Add(0, 7, 1, EntryAt(8), At(1));
  gate_.Add(1, 7, 1, EntryAt(8), At(1));
  gate_.Leave(2, 6);  // of an older process: nothing
  EXPECT_FALSE(gate_.Complete(At(1)));
  gate_.Leave(2, 7);
  EXPECT_TRUE(gate_.Complete(At(1)));
  EXPECT_EQ(gate_.Add(2, 7, 1, EntryAt(8), At(1)), Arrival::kUnknown);
}

TEST_F(RoundGateTest, ARestartedWorkerReplacesItsOldProcess) {
  Whole(0, 0);
  EXPECT_TRUE(gate_.Join(1, 8, 1, At(1)));
  EXPECT_EQ(gate_.Add(1, 7, 1, EntryAt(8), At(1)), Arrival::kReplaced);
  EXPECT_FALSE(gate_.Join(1, 7, 1, At(1))) << "the old process cannot take the rank back";
  EXPECT_EQ(gate_.Add(1, 8, 1, EntryAt(8), At(1)), Arrival::kWaits);
  EXPECT_TRUE(gate_.Join(1, 3, 1, At(20))) << "after its lease any process may have it";
}

TEST_F(RoundGateTest, AnswersReplaysAndIgnoresOldWindows) {
  Whole(4, 0);
  EXPECT_EQ(gate_.Add(0, 7, 4, EntryAt(8), At(1)), Arrival::kAnswered);
  EXPECT_EQ(gate_.Add(0, 7, 3, EntryAt(8), At(1)), Arrival::kStale);
  gate_.Add(0, 7, 6, EntryAt(8), At(1));
  EXPECT_EQ(gate_.Add(1, 7, 5, EntryAt(8), At(1)), Arrival::kStale) << "reordered";
}

TEST_F(RoundGateTest, ALaterWindowClosesTheOpenRound) {
  gate_.Add(0, 7, 0, EntryAt(8), At(0));
  EXPECT_EQ(gate_.Add(1, 7, 1, EntryAt(8), At(0)), Arrival::kEndsOpen);
  EXPECT_EQ(gate_.Close({}, At(0)).index, 0);
  EXPECT_EQ(gate_.Add(1, 7, 1, EntryAt(8), At(0)), Arrival::kWaits);
}

TEST_F(RoundGateTest, ALaterWindowOfAProcessThatIsNotHereClosesNothing) {
  gate_.Add(0, 7, 0, EntryAt(8), At(0));
  EXPECT_EQ(gate_.Add(1, 6, 1, EntryAt(8), At(0)), Arrival::kReplaced);
  gate_.Leave(2, 7);
  EXPECT_EQ(gate_.Add(2, 7, 1, EntryAt(8), At(0)), Arrival::kUnknown);
  EXPECT_EQ(gate_.Add(1, 7, 0, EntryAt(8), At(0)), Arrival::kWaits) << "the round is still open";
}

TEST_F(RoundGateTest, AWindowTheOthersCannotHaveReachedIsRefused) {
  const std::int64_t impossible = std::int64_t{1} << 53;
  Whole(4, 0);
  EXPECT_EQ(gate_.Add(1, 7, impossible, EntryAt(8), At(1)), Arrival::kTooFar);
  EXPECT_FALSE(gate_.Join(1, 8, impossible, At(1)));
  EXPECT_EQ(gate_.Add(0, 7, 5, EntryAt(8), At(1)), Arrival::kWaits) << "the others go on";
  EXPECT_EQ(gate_.Add(1, 7, 10000, EntryAt(8), At(1)), Arrival::kEndsOpen) << "late, but possible";
}

TEST_F(RoundGateTest, AJobMayStartAtAnyWindow) {
  RoundGate gate(2, {.lease_s = 10, .round_deadline_s = 1});
  const std::int64_t window = std::int64_t{1} << 40;
  EXPECT_TRUE(gate.Join(0, 7, window, At(0))) << "after a restart of the arbitrator";
  EXPECT_TRUE(gate.Join(1, 7, window, At(0)));
  EXPECT_EQ(gate.Add(0, 7, window, EntryAt(8), At(0)), Arrival::kWaits);
  EXPECT_EQ(gate.Add(1, 7, window, EntryAt(8), At(0)), Arrival::kWaits);
}

TEST_F(RoundGateTest, AWorkerThatCameFirstWithAnImpossibleWindowStarvesNobody) {
  RoundGate gate(2, {.lease_s = 10, .round_deadline_s = 1});
  const std::int64_t impossible = std::int64_t{1} << 53;
  EXPECT_TRUE(gate.Join(0, 7, impossible, At(0)));
  EXPECT_EQ(gate.Add(0, 7, impossible, EntryAt(8), At(0)), Arrival::kWaits);
  (void)gate.Close({}, At(1));
  EXPECT_TRUE(gate.Join(1, 7, 0, At(1)));
  EXPECT_EQ(gate.Add(1, 7, 0, EntryAt(8), At(1)), Arrival::kWaits);
  EXPECT_EQ(gate.Add(0, 7, impossible + 1, EntryAt(8), At(1)), Arrival::kTooFar);
}

// Every report renews its sender's lease, none the deadline: else a straggler would hold the round
// open for as long as the others trickle in.
TEST_F(RoundGateTest, TheDeadlineRunsFromTheFirstReport) {
  gate_.Add(0, 7, 0, EntryAt(8), At(0));
  gate_.Add(1, 7, 0, EntryAt(8), At(0.9));
  EXPECT_FALSE(gate_.Complete(At(0.99)));
  EXPECT_TRUE(gate_.Complete(At(1)));
}

TEST_F(RoundGateTest, WhatTheOldProcessReportedIsVoidWhenANewOneHasTheRank) {
  Whole(0, 0);
  gate_.Add(0, 7, 1, EntryAt(8), At(1));
  gate_.Add(1, 7, 1, EntryAt(99), At(1));  // and its process ends
  EXPECT_TRUE(gate_.Join(1, 8, 1, At(1)));
  gate_.Add(2, 7, 1, EntryAt(8), At(1));
  EXPECT_FALSE(gate_.Complete(At(1.5))) << "the new process has not reported";
  const Round round = gate_.Close({}, At(2));
  EXPECT_FALSE(round.entries[1].report.has_value());
}

TEST_F(RoundGateTest, AJobThatGoesBackToACheckpointGoesOn) {
  Whole(20, 0);
  EXPECT_EQ(gate_.Add(0, 7, 10, EntryAt(8), At(1)), Arrival::kStale);
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(gate_.Join(rank, 9, 10, At(2)));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(gate_.Add(rank, 9, 10, EntryAt(8), At(2)), Arrival::kWaits);
  EXPECT_EQ(gate_.Close({}, At(2)).index, 10);
}

TEST_F(RoundGateTest, HostileTimesGiveALegalRound) {
  RoundEntry entry = EntryAt(8);
  entry.report->iteration_ms = -1e300;
  gate_.Add(0, 7, 0, entry, At(0));
  entry.report->iteration_ms = kMissing;
  gate_.Add(1, 7, 0, entry, At(0));
  const Round round = gate_.Close({}, At(5));
  EXPECT_GT(round.seconds, 0);
  EXPECT_TRUE(std::isfinite(round.seconds));
  EXPECT_FALSE(round.entries[2].active) << "never heard";
}

}  // namespace
}  // namespace dynamix
