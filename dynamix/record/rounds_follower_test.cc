#include "dynamix/record/rounds_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "dynamix/record/testing/record_folder.h"

namespace dynamix {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

class RoundsFollowerTest : public RecordFolderTest {
 protected:
  void Append(const std::string& text, std::ios::openmode mode = std::ios::app) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path_, mode) << text;
  }
  std::vector<int> New() {
    std::vector<int> rounds;
    follower_.ReadNew([&](const json& line) { rounds.push_back(line.at("round").get<int>()); });
    return rounds;
  }

  const std::filesystem::path path_ = folder_ / "rounds.jsonl";
  RoundsFollower follower_{path_};
};

TEST_F(RoundsFollowerTest, EachLineIsReadOnceAndWhenItIsWhole) {
  EXPECT_THAT(New(), IsEmpty());
  Append("{\"roun");
  EXPECT_THAT(New(), IsEmpty());
  EXPECT_EQ(follower_.starts(), 0);
  Append("d\": 0}\n{\"round\": 1}\n{\"round\"");
  EXPECT_THAT(New(), ElementsAre(0, 1));
  Append(": 2}\n");
  EXPECT_THAT(New(), ElementsAre(2));
  EXPECT_THAT(New(), IsEmpty());
  EXPECT_EQ(follower_.starts(), 1);
}

TEST_F(RoundsFollowerTest, ARunThatStartsAnewIsReadFromItsBeginning) {
  Append("{\"round\": 0}\n{\"round\": 1}\n");
  EXPECT_THAT(New(), ElementsAre(0, 1));
  Append("{\"round\": 7}\n", std::ios::trunc);
  EXPECT_THAT(New(), ElementsAre(7));
  EXPECT_EQ(follower_.starts(), 2);
}

TEST_F(RoundsFollowerTest, WhatCannotBeReadIsLeftOut) {
  Append("{\"round\": 0}\n{broken\n{\"round\": 1}\n");
  EXPECT_THAT(New(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace dynamix
