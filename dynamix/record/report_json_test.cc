#include "dynamix/record/report_json.h"

#include <gtest/gtest.h>

#include "dynamix/core/testing/filled_report.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/record/run_record.h"

namespace dynamix {
namespace {

using nlohmann::json;

TEST(ReportJsonTest, EveryFieldIsWrittenAndReadBack) {
  const Report report = FilledReport();
  const json text = json::parse(ReportJson(report).dump());
  EXPECT_EQ(FieldsOf(ReadReportJson(text, report.window)), FieldsOf(report));
}

TEST(ReportJsonTest, WhatIsMissingIsNull) {
  const json object = ReportJson(Report{});
  EXPECT_TRUE(object.at("compute_ms").is_null());
  EXPECT_TRUE(object.at("training").at("loss").is_null());
  const Report back = ReadReportJson(object, 0);
  EXPECT_TRUE(IsMissing(back.compute_ms));
  EXPECT_TRUE(IsMissing(back.training.loss));
}

TEST(ReportJsonTest, AnOlderRecordWithFewerMeasurementsIsRead) {
  const json object = {{"rank", 1}, {"iterations", 10}, {"local_batch", 32}, {"compute_ms", 5.5}};
  const Report report = ReadReportJson(object, 7);
  EXPECT_EQ(report.window, 7);
  EXPECT_EQ(report.compute_ms, 5.5);
  EXPECT_TRUE(IsMissing(report.host.cpu_use));
  EXPECT_THROW(ReadReportJson({{"rank", 1}}, 7), json::exception);
}

TEST(ReportJsonTest, ARoundsLineKeepsItsReports) {
  Round round;
  round.seconds = 1;
  round.entries = {FilledEntry(), FilledEntry()};
  round.index = round.entries[1].report->window;
  round.entries[0].report.reset();
  const Decision decision{.sizes = {105, 105}, .decisions = Sizes{.local = {105, 105}}};
  const json line = RoundJson(round, decision, Truth{});
  const RecordedRound back = ParseRound(json::parse(line.dump()));
  ASSERT_EQ(back.workers.size(), 2u);
  EXPECT_EQ(back.workers[0].iterations, 0) << "it was late";
  EXPECT_EQ(FieldsOf(back.workers[1]), FieldsOf(*round.entries[1].report));
  EXPECT_EQ(back.training.loss, round.entries[1].report->training.loss);
}

}  // namespace
}  // namespace dynamix
