#include "dynamix/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"
#include "dynamix/page/points.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::Not;

RecordedRound RecordedAt(int index, double accuracy) {
  RecordedRound round;
  round.index = index;
  round.seconds = 2.0 * (index + 1);
  round.window_seconds = 2;
  round.accuracy = accuracy;
  round.batches = {32, 0};
  round.sizes = {48, 16};
  round.workers = {Report{.iterations = 10,
                          .local_batch = 32,
                          .compute_ms = 100,
                          .wait_ms = 50,
                          .communication_ms = 50},
                   Report{}};
  return round;
}

RunRecord Recorded(const std::string& policy, int seed, double seconds) {
  RunRecord run;
  run.name = policy + "-" + std::to_string(seed);
  run.config.policy = policy;
  run.config.job.seed = seed;
  run.config.job.workers = 2;
  run.config.job.workload.name = "small";
  run.config.job.workload.target.accuracy = 0.9;
  run.rounds = {RecordedAt(0, 0.5), RecordedAt(1, 0.9)};
  run.reached = true;
  run.time_to_target_s = seconds;
  run.accuracy = 0.9;
  return run;
}

TEST(PageTest, TheVerdictComesFirstAndTheTableIsOverAllSeeds) {
  const std::string html =
      RenderPage({.runs = {Recorded("static", 1, 40), Recorded("static", 2, 42),
                           Recorded("fast", 1, 10), Recorded("fast", 2, 14)}});
  EXPECT_LT(html.find("class=\"verdict\""), html.find("<table>"));
  EXPECT_THAT(html, HasSubstr("<td>fast</td><td>2</td>"));
  EXPECT_THAT(html, HasSubstr("11.83 s<br><small>10.00 s to 14.00 s</small>"));
  EXPECT_THAT(html, HasSubstr("200.0 ms")) << "4 s over 20 iterations";
  EXPECT_THAT(html, HasSubstr("\"static, seed 2\"")) << "a line of its own";
}

TEST(PageTest, AJobThatWaitsForNothingMissedNothing) {
  RunRecord run = Recorded("static", 1, 40);
  run.reached = false;
  EXPECT_THAT(RenderPage({.runs = {run}}), HasSubstr("<td>missed</td>"));
  run.config.job.workload.target.accuracy = 1;
  EXPECT_THAT(RenderPage({.runs = {run}}), Not(HasSubstr("missed</td>")));
}

TEST(PageTest, RunsOnDifferentClocksAreNoSeedsOfOnePolicy) {
  std::vector<RunRecord> runs = {Recorded("static", 1, 40), Recorded("static", 1, 10)};
  runs[1].config.job.workload.optimizer.clock = ScheduleClock::kSteps;
  const std::string html = RenderPage({.runs = runs});
  EXPECT_THAT(html, HasSubstr("<td>static, by samples</td><td>1</td>"));
  EXPECT_THAT(html, HasSubstr("<td>static, by steps</td><td>1</td>"));
}

TEST(PageTest, NothingInARecordEndsTheScriptAndOnlyThatScriptMayRun) {
  RunRecord run = Recorded("static", 1, 4);
  run.config.policy = "</script><b>";
  const std::string html = RenderPage({.runs = {run}});
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(html, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(PageTest, RunsOfDifferentJobsAreNotCompared) {
  std::vector<RunRecord> runs = {Recorded("static", 1, 40), Recorded("fast", 2, 10)};
  EXPECT_NO_THROW(RequireSameJob(runs));
  runs[1].config.job.workers = 4;
  EXPECT_THAT([&] { RequireSameJob(runs); },
              testing::ThrowsMessage<InputError>(testing::AllOf(HasSubstr("runs of different jobs"),
                                                                HasSubstr("fast-2 is small on"))));
}

TEST(PointsTest, APointHoldsTheRecordsValuesAndNullWhereNothingWasMeasured) {
  const RecordedRound round = RecordedAt(0, 0.5);
  Reasons reasons("balanced", nullptr);
  const nlohmann::json point = PointJson(round, nullptr, reasons);
  EXPECT_EQ(point["t"], 2);
  EXPECT_EQ(point["samples"], 320);
  EXPECT_EQ(point["late"], 1);
  EXPECT_EQ(point["compute"].dump(), "[100.0,null]");
  EXPECT_TRUE(point["loss"].is_null());
  EXPECT_EQ(point["why"][0]["name"], "fastest worker, samples/s");
}

}  // namespace
}  // namespace dynamix
