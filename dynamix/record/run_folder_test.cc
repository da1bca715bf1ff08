#include "dynamix/record/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>

#include "dynamix/core/input_error.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/record/recorded_curve.h"
#include "dynamix/record/round_log.h"
#include "dynamix/record/run_record.h"
#include "dynamix/record/testing/record_folder.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Nothing changes.
Decision DecisionFor(const Round& round) {
  Decision decision;
  decision.sizes = Batches(round);
  decision.decisions = Sizes{};
  return decision;
}

class RunFolderTest : public RecordFolderTest {
 protected:
  // A line of a window of two seconds, at the end of which both workers' loss is `loss`.
  static json Line(int index, double loss = 1) {
    Rng rng(1);
    Round round = SampleRound(rng, 2);
    round.index = index;
    for (RoundEntry& entry : round.entries) entry.report->training.loss = loss;
    Truth truth;
    truth.seconds = 2.0 * (index + 1);
    truth.held_out_accuracy = 0.5;
    return RoundJson(round, DecisionFor(round), truth);
  }

  static json Summary() { return {{"accuracy", 0.5}, {"reached", false}}; }

  std::vector<std::int64_t> Indices() const {
    std::vector<std::int64_t> rounds;
    for (const RecordedRound& round : LoadRun(folder_).rounds) rounds.push_back(round.index);
    return rounds;
  }

  static std::string Config() {
    RunConfig config;
    config.job.workload.target.accuracy = 0.9;
    return FormatRunConfig(config);
  }

  const std::string config_ = Config();
};

TEST_F(RunFolderTest, ARunComesBackAsItWasRecorded) {
  RunFolder folder(folder_, config_);
  for (int i = 0; i < 3; ++i) folder.AddRound(Line(i));
  EXPECT_FALSE(fs::exists(folder_ / "summary.json")) << "not finished yet";
  folder.Finish(Summary());
  EXPECT_EQ(folder.Loss(), "");
  const RunRecord run = LoadRun(folder_);
  EXPECT_EQ(run.rounds.size(), 3);
  EXPECT_EQ(run.lost_rounds, 0);
  EXPECT_EQ(run.accuracy, 0.5);
}

TEST_F(RunFolderTest, ATargetLossIsReachedFromAbove) {
  RunConfig config;
  config.job.workload.target.loss = 0.4;
  RunFolder folder(folder_, FormatRunConfig(config));
  const std::vector<double> losses = {0.9, 0.5, 0.4, 0.3};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    json line = Line(static_cast<int>(i));
    line["loss"] = losses[i];
    folder.AddRound(line);
  }
  const RunRecord run = LoadRun(folder_);  // not finished: the rounds alone say it
  EXPECT_TRUE(run.reached);
  EXPECT_EQ(run.time_to_target_s, 6);
}

TEST_F(RunFolderTest, AnEmptyPathRecordsNothing) {
  RunFolder folder({}, config_);
  folder.AddRound(Line(0));
  folder.Finish(Summary());
  EXPECT_EQ(folder.Loss(), "");
  EXPECT_FALSE(fs::exists("rounds.jsonl"));
}

TEST_F(RunFolderTest, ANewRunReplacesTheOneThatWasThere) {
  {
    RunFolder old(folder_, config_);
    old.AddRound(Line(0));
    old.Finish(Summary());
  }
  RunFolder folder(folder_, config_);
  EXPECT_FALSE(fs::exists(folder_ / "summary.json"));
  EXPECT_EQ(fs::file_size(folder_ / "rounds.jsonl"), 0);
}

TEST_F(RunFolderTest, RoundsTheDiskRefusesAreCountedToldAndOnlyTheyAreLost) {
  std::vector<std::string> warnings;
  RunFolder folder(folder_, config_, 0,
                   [&](const std::string& sentence) { warnings.push_back(sentence); });
  folder.AddRound(Line(0));
  for (int outage = 0; outage < 2; ++outage) {
    const FileSizeLimit full(fs::file_size(folder_ / "rounds.jsonl") + 20);
    folder.AddRound(Line(1 + 3 * outage));
    folder.AddRound(Line(2 + 3 * outage));
    if (outage == 1) break;
    setrlimit(RLIMIT_FSIZE, &full.before());
    folder.AddRound(Line(3));
  }
  EXPECT_EQ(warnings.size(), 2) << "one per outage";
  EXPECT_THAT(Indices(), ElementsAre(0, 3));
  EXPECT_EQ(LoadRun(folder_).lost_rounds, 2) << "without a summary: the gaps";
  EXPECT_EQ(folder.Finish(Summary())["lost_rounds"], 4);
  EXPECT_EQ(LoadRun(folder_).lost_rounds, 4);
  EXPECT_THAT(folder.Loss(), AllOf(HasSubstr(folder_.string()), HasSubstr("4 rounds could not"),
                                   HasSubstr("File too large")));
}

TEST_F(RunFolderTest, TheSummaryIsWholeOrAbsent) {
  RunFolder folder(folder_, config_);
  folder.AddRound(Line(0));
  {
    const FileSizeLimit full(10);
    folder.Finish(Summary());
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::UnorderedElementsAre("config.toml", "rounds.jsonl"));
  EXPECT_THAT(folder.Loss(), HasSubstr("the summary could not be recorded"));
}

TEST_F(RunFolderTest, AFolderThatCannotBeWrittenIsKnownAtTheStart) {
  Write(folder_, "a file where a folder should be");
  EXPECT_THROW(RunFolder(folder_, config_), std::runtime_error);
  fs::remove(folder_);
  const FileSizeLimit full(10);
  EXPECT_THROW(RunFolder(folder_, config_), std::runtime_error);
}

TEST_F(RunFolderTest, AResumedRunGoesOnAfterItsRoundsAndRemembersWhatItLost) {
  {
    RunFolder first(folder_, config_);
    for (const int round : {0, 1, 3, 4, 5}) first.AddRound(Line(round));
  }
  RunFolder folder(folder_, config_, 5);
  folder.AddRound(Line(5));
  EXPECT_THAT(Indices(), ElementsAre(0, 1, 3, 4, 5));
  EXPECT_EQ(folder.Finish(Summary())["lost_rounds"], 1);
  EXPECT_THAT(folder.Loss(), HasSubstr("1 round could not"));
}

TEST_F(RunFolderTest, ARunWhoseRoundsAnotherProcessRecordsLosesNone) {
  RunFolder folder(folder_, config_, 40);
  EXPECT_EQ(folder.Finish(Summary())["lost_rounds"], 0);
  EXPECT_EQ(folder.Loss(), "");
}

TEST_F(RunFolderTest, ADamagedSummaryIsNamed) {
  RunFolder(folder_, config_).AddRound(Line(0));
  for (const char* text : {"", "{", "[]", R"({"reached":"yes"})"}) {
    Write(folder_ / "summary.json", text);
    EXPECT_THAT([&] { LoadRun(folder_); },
                testing::ThrowsMessage<InputError>(HasSubstr("summary.json is damaged")))
        << text;
  }
}

TEST_F(RunFolderTest, TheLossOfAnEarlierRunIsAClock) {
  RunFolder folder(folder_, config_);
  for (int i = 0; i < 20; ++i) folder.AddRound(Line(i, i < 10 ? 2 : 1));
  const RecordedCurve curve = ReadRecordedCurve(folder_ / "rounds.jsonl");
  EXPECT_DOUBLE_EQ(curve.seconds(), 40);
  EXPECT_GT(curve.Tau(1.5), 20);
  EXPECT_LT(curve.Tau(1.5), 30);
}

TEST_F(RunFolderTest, ACurveNeedsTwoLosses) {
  const auto read = [this] { ReadRecordedCurve(folder_ / "rounds.jsonl"); };
  RunFolder folder(folder_, config_);
  folder.AddRound(Line(0, kMissing));
  folder.AddRound(Line(1, 2));
  EXPECT_THAT(read, testing::ThrowsMessage<InputError>(HasSubstr("fewer than two rounds")));
  folder.AddRound(Line(2, 1));
  EXPECT_NO_THROW(read());
  folder.AddRound({{"round", 3}});
  EXPECT_THAT(read, testing::ThrowsMessage<InputError>(HasSubstr("rounds.jsonl:4 is damaged")));
}

TEST_F(RunFolderTest, AnArbitratorsLogIsOneFilePerJobAndOutlivesTheArbitrator) {
  const auto add = [](RoundLog& log, const std::string& job, int index) {
    Rng rng(1);
    RoundRecord record;
    record.job = job;
    record.round = SampleRound(rng, 2);
    record.round.index = index;
    record.decision = DecisionFor(record.round);
    log.Add(record);
  };
  const auto rounds = [this](const std::string& job) {
    std::vector<int> indices;
    ReadRounds(folder_ / job / "rounds.jsonl",
               [&](const json& line) { indices.push_back(line.at("round").get<int>()); });
    return indices;
  };
  RoundLog log(folder_);
  add(log, "a", 0);
  add(log, "b", 0);
  {
    const FileSizeLimit full(10);
    EXPECT_THROW(add(log, "a", 1), std::runtime_error);
  }
  add(log, "a", 2);
  // More jobs than files are kept open; then another arbitrator.
  for (int i = 0; i < 70; ++i) add(log, "job" + std::to_string(i), 0);
  add(log, "b", 1);
  RoundLog again(folder_);
  add(again, "a", 3);
  EXPECT_THAT(rounds("a"), ElementsAre(0, 2, 3));
  EXPECT_THAT(rounds("b"), ElementsAre(0, 1));
}

TEST_F(RunFolderTest, AnAdvisedJobIsReadFromTheArbitratorsRoundsWithOrWithoutItsOwnFolder) {
  RoundLog log(folder_ / "served");
  int seconds = 0;
  const auto add = [&](int index, const std::string& policy) {
    Rng rng(1);
    RoundRecord record;
    record.job = "job";
    record.round = SampleRound(rng, 2);
    record.round.index = index;
    record.seconds = ++seconds;
    record.decision = DecisionFor(record.round);
    record.decision.policy = policy;
    log.Add(record);
  };
  add(0, "static");  // a run before
  add(1, "static");
  add(0, "balanced");
  add(1, "goodput");
  add(2, "goodput");
  add(2, "goodput");  // it went on from a checkpoint
  RunRecord run = LoadRun(folder_ / "served" / "job");
  EXPECT_EQ(run.config.policy, "balanced, then goodput");
  EXPECT_EQ(run.config.job.workers, 2);
  ASSERT_EQ(run.rounds.size(), 3u);
  EXPECT_EQ(run.rounds.back().seconds, 6);
  EXPECT_TRUE(SummaryOf(run)["accuracy"].is_null()) << "only the job knows";

  RunFolder(folder_ / "own", config_).Finish(Summary());
  run = LoadRun(folder_ / "own", folder_ / "served" / "job");
  EXPECT_EQ(run.config.policy, "balanced, then goodput");
  EXPECT_EQ(run.config.job.workload.target.accuracy, 0.9);
  EXPECT_EQ(run.accuracy, 0.5);
}

TEST_F(RunFolderTest, AFolderThatIsNotARunIsRefused) {
  EXPECT_NO_THROW(RequireRunFolder("--run", folder_));  // it does not exist
  Write(folder_ / "thesis.txt", "all of it");
  EXPECT_THAT([this] { RequireRunFolder("--run", folder_); },
              testing::ThrowsMessage<InputError>(
                  AllOf(HasSubstr("--run"), HasSubstr("something else than a run"))));
  Write(folder_ / "config.toml", config_);
  EXPECT_NO_THROW(RequireRunFolder("--run", folder_));
}

}  // namespace
}  // namespace dynamix
