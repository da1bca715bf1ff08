#include "dynamix/record/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace dynamix {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RunTableTest, ARowPerRoundAndWorkerWithACellPerColumn) {
  RunRecord run;
  run.name = "mine, \"best\"";
  run.config.policy = "static";
  RecordedRound round;
  round.index = 4;
  round.seconds = 2.5;
  round.batches = {16, 32};
  round.sizes = {16, 32};
  Report report{.iterations = 10};
  report.compute_ms = 0.1;
  round.workers = {report, Report{.iterations = 0}};
  run.rounds = {round};
  std::ostringstream out;
  EXPECT_EQ(WriteRows(run, out), 2);
  std::istringstream lines(out.str());
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_THAT(first, StartsWith("\"mine, \"\"best\"\"\",static,1,4,2.5,"));
  EXPECT_THAT(first, HasSubstr(",0,16,16,,0.1,"));
  // The worker that did not report has its batch, and nothing else.
  EXPECT_THAT(second, HasSubstr(",1,32,32,,,"));
  EXPECT_EQ(std::count(second.begin(), second.end(), ',') - 1,  // one is in the name
            static_cast<std::ptrdiff_t>(TableColumns().size()) - 1);
  EXPECT_THAT(TableColumns(), Contains("network.smoothed_rtt_us"));
}

}  // namespace
}  // namespace dynamix
