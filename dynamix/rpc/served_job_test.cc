#include "dynamix/rpc/served_job.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "dynamix/arbitrator/testing/fixed_policy.h"

namespace dynamix {
namespace {

RoundEntry EntryOf(int batch) {
  RoundEntry entry{.bounds = {.min = 4, .max = 256}, .start_batch = batch, .batch = batch};
  entry.report.emplace();
  return entry;
}

// Found by a schedule of faults: rank 0 waits in window 9 for rank 2 when rank 1 joins at window 8,
// which takes the rounds back.
TEST(ServedJobTest, AnAnswerIsForTheWindowThatWasAskedAbout) {
  ArbitratorOptions own;
  own.guard.on = false;
  const JobOptions options{.gate = {.lease_s = 10, .round_deadline_s = 1}, .epoch = 1};
  ServedJob job("job", 3, {}, std::make_unique<Arbitrator>(Fixed(40), std::move(own)), options,
                nullptr);
  const auto now = std::chrono::steady_clock::now();
  const auto name = [](int rank) {
    return WorkerName{.job = "job", .rank = rank, .incarnation = 1};
  };
  std::map<int, std::int64_t> answered;  // window, by rank
  const auto report = [&](int rank, std::int64_t window, auto at) {
    job.Report({.worker = name(rank), .window = window, .entry = EntryOf(32)}, at,
               [&answered, rank](Refusal refusal, const Advice& advice) {
                 EXPECT_EQ(refusal, Refusal::kNone);
                 answered[rank] = advice.window;
               });
  };
  const auto join = [&](int rank, auto at) {
    return job.Join({.worker = name(rank), .size = 3, .next_window = 8}, at).ok();
  };
  ASSERT_TRUE(join(0, now) && join(2, now));
  report(0, 8, now);
  report(2, 8, now);
  const auto later = now + std::chrono::seconds(2);
  job.Tick(later);  // rank 1 has not come
  EXPECT_EQ(answered, (std::map<int, std::int64_t>{{0, 8}, {2, 8}}));
  report(0, 9, later);
  ASSERT_TRUE(join(1, later));
  report(1, 8, later);
  job.Tick(later + std::chrono::seconds(2));
  EXPECT_EQ(answered, (std::map<int, std::int64_t>{{0, 9}, {1, 8}, {2, 8}}));
}

}  // namespace
}  // namespace dynamix
