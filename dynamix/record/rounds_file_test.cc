#include "dynamix/record/rounds_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "dynamix/core/input_error.h"
#include "dynamix/record/testing/record_folder.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class RoundsFileTest : public RecordFolderTest {
 protected:
  const fs::path path_ = folder_ / "job" / "rounds.jsonl";

  std::vector<int> Indices() const {
    std::vector<int> rounds;
    ReadRounds(path_, [&](const json& line) { rounds.push_back(line.at("round").get<int>()); });
    return rounds;
  }
};

json Line(int round) { return {{"round", round}, {"text", std::string(100, 'x')}}; }

TEST_F(RoundsFileTest, LinesComeBackInOrder) {
  RoundsWriter writer(path_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(writer.Add(Line(i)));
  EXPECT_TRUE(writer.Sync());
  EXPECT_THAT(Indices(), ElementsAre(0, 1, 2));
  EXPECT_EQ(writer.lost(), 0);
}

TEST_F(RoundsFileTest, AnotherWriterGoesOnAfterTheLinesThatAreThere) {
  EXPECT_TRUE(RoundsWriter(path_).Add(Line(0)));
  EXPECT_TRUE(RoundsWriter(path_).Add(Line(1)));
  EXPECT_THAT(Indices(), ElementsAre(0, 1));
}

TEST_F(RoundsFileTest, WhatACrashLeftOfALineIsCutOff) {
  // Longer than the block in which the end of the last whole line is looked for.
  for (const std::size_t cut : {std::size_t{1}, std::size_t{4095}, std::size_t{4096}, 9000ul}) {
    fs::remove_all(folder_);
    EXPECT_TRUE(RoundsWriter(path_).Add(Line(0)));
    std::ofstream(path_, std::ios::app) << std::string(cut, '{');
    EXPECT_THAT(Indices(), ElementsAre(0)) << "a reader leaves it out";
    EXPECT_TRUE(RoundsWriter(path_).Add(Line(1)));
    EXPECT_THAT(Indices(), ElementsAre(0, 1)) << cut;
  }
}

// A file that could not be written may be gone when there is room again (another folder was mounted).
TEST_F(RoundsFileTest, AfterAFailureTheFileIsOpenedAnew) {
  RoundsWriter writer(path_);
  EXPECT_TRUE(writer.Add(Line(0)));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{fs::file_size(path_), before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_FALSE(writer.Add(Line(1)));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  fs::remove(path_);
  EXPECT_TRUE(writer.Add(Line(2)));
  EXPECT_THAT(Indices(), ElementsAre(2));
  EXPECT_EQ(writer.lost(), 1);
}

TEST_F(RoundsFileTest, AFileOfNothingButACutLineStartsAnew) {
  Write(path_, "{\"round\"");
  EXPECT_TRUE(RoundsWriter(path_).Add(Line(7)));
  EXPECT_THAT(Indices(), ElementsAre(7));
}

TEST_F(RoundsFileTest, AResumedRunKeepsTheRoundsBeforeIt) {
  RoundsWriter first(path_);
  for (const int round : {0, 1, 4, 5, 6}) EXPECT_TRUE(first.Add(Line(round)));
  RoundsWriter second(path_);
  const Result<std::int64_t> kept = second.KeepBefore(5);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept.value(), 3) << "rounds 2 and 3 were lost";
  EXPECT_TRUE(second.Add(Line(5)));
  EXPECT_THAT(Indices(), ElementsAre(0, 1, 4, 5));
  ASSERT_TRUE(RoundsWriter(path_).KeepBefore(0));
  EXPECT_THAT(Indices(), ElementsAre());
}

TEST_F(RoundsFileTest, KeepsNothingBehindALineThatIsDamaged) {
  Write(path_, "{\"round\":0}\n{\"round\":\"1\"}\n{\"round\":2}\n");
  EXPECT_EQ(RoundsWriter(path_).KeepBefore(9).value(), 1);
}

TEST_F(RoundsFileTest, ALineTheDiskRefusesIsTakenBackCountedAndTheNextOneIsTriedAnew) {
  RoundsWriter writer(path_);
  EXPECT_TRUE(writer.Add(Line(0)));
  const auto size = fs::file_size(path_);
  {
    const FileSizeLimit full(size + 50);  // half a line fits
    for (const int round : {1, 2}) {
      const Status added = writer.Add(Line(round));
      ASSERT_FALSE(added);
      EXPECT_THAT(added.error(), testing::AllOf(HasSubstr(path_.string()), HasSubstr("too large")));
      EXPECT_EQ(fs::file_size(path_), size) << "whole lines only";
    }
  }
  EXPECT_TRUE(writer.Add(Line(3)));
  EXPECT_EQ(writer.lost(), 2);
  EXPECT_THAT(Indices(), ElementsAre(0, 3));
}

TEST_F(RoundsFileTest, AFolderThatCannotBeMadeLosesLinesOnly) {
  Write(folder_ / "job", "a file where a folder should be");
  RoundsWriter writer(path_);
  EXPECT_FALSE(writer.Add(Line(0)));
  EXPECT_FALSE(RoundsWriter(path_).KeepBefore(0));
  fs::remove(folder_ / "job");
  EXPECT_TRUE(writer.Add(Line(1)));
  EXPECT_THAT(Indices(), ElementsAre(1));
  EXPECT_EQ(writer.lost(), 1);
}

TEST_F(RoundsFileTest, TextThatIsNotUtf8IsReplaced) {
  RoundsWriter writer(path_);
  EXPECT_TRUE(writer.Add({{"round", 0}, {"job", "a\xff"}}));
  EXPECT_THAT(Indices(), ElementsAre(0));
}

TEST_F(RoundsFileTest, DamageIsNamedWithItsLine) {
  Write(path_, "{\"round\":0}\n{broken\n{\"round\":2}\n");
  EXPECT_THAT([&] { Indices(); },
              testing::ThrowsMessage<InputError>(HasSubstr("rounds.jsonl:2 is damaged")));
  Write(path_, "{\"round\":0}\n{}\n");
  EXPECT_THAT([&] { Indices(); },
              testing::ThrowsMessage<InputError>(HasSubstr("rounds.jsonl:2 is damaged")));
  EXPECT_THAT([&] { ReadRounds(folder_ / "none", [](const json&) {}); },
              testing::ThrowsMessage<InputError>(HasSubstr("none")));
}

}  // namespace
}  // namespace dynamix
