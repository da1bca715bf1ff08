#include "dynamix/core/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

TEST(ObjectiveTest, ReadsBackEveryFieldItWrites) {
  const Objective written{.reward = {.quality = 1.5,
                                     .efficiency = 0.25,
                                     .stability = 1.0 / 3,
                                     .straggler = 0.75,
                                     .team = 0.125},
                          .team_discount = 0.97,
                          .local_discount = 0.25,
                          .units_per_run = 50,
                          .missed_cost = 3};
  const Objective read = ParseObjective(Format(written));
  EXPECT_EQ(read.reward.quality, 1.5);
  EXPECT_EQ(read.reward.efficiency, 0.25);
  EXPECT_EQ(read.reward.stability, 1.0 / 3);
  EXPECT_EQ(read.reward.straggler, 0.75);
  EXPECT_EQ(read.reward.team, 0.125);
  EXPECT_EQ(read.team_discount, 0.97);
  EXPECT_EQ(read.local_discount, 0.25);
  EXPECT_EQ(read.units_per_run, 50);
  EXPECT_EQ(read.missed_cost, 3);
}

TEST(ObjectiveTest, TheDefaultsAreThoseOfTheShippedPolicy) {
  EXPECT_EQ(Format(Objective{}),
            "quality=1 efficiency=0.1 stability=0.1 straggler=1 team=0 team_discount=0.997 "
            "local_discount=0.5 units_per_run=100 missed_cost=2");
}

TEST(ObjectiveTest, RefusesWordsItDoesNotKnowAndValuesOutOfRange) {
  const auto message = [](const char* text) {
    try {
      ParseObjective(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("speed=1"), testing::HasSubstr("speed=1"));
  EXPECT_THAT(message("quality"), testing::HasSubstr("quality"));
  EXPECT_THAT(message("quality=much"), testing::HasSubstr("quality=much"));
  EXPECT_THAT(message("quality=1much"), testing::HasSubstr("quality=1much"));
  EXPECT_THAT(message("team_discount=2"), testing::HasSubstr("team_discount = 2"));
}

}  // namespace
}  // namespace dynamix
