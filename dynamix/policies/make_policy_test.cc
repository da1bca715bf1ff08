#include "dynamix/policies/make_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dynamix/core/input_error.h"
#include "dynamix/policies/testing/closed_loop.h"

namespace dynamix {
namespace {

TEST(MakePolicyTest, RefusesUnknownNamesAndBadSizes) {
  EXPECT_THROW(MakePolicy("greedy"), InputError);
  EXPECT_THROW(MakePolicy("static:0"), InputError);
  EXPECT_THROW(MakePolicy("static:12x"), InputError);
  EXPECT_TRUE(IsRule("static:x"));
  EXPECT_FALSE(IsRule("policies/default.safetensors"));
  for (const std::string& name : RuleNames()) EXPECT_EQ(MakePolicy(name)->name(), name);
}

TEST(MakePolicyTest, TakesConstantsAfterTheName) {
  EXPECT_TRUE(IsRule("composite:noise=0.2:horizon=0.3"));
  EXPECT_NO_THROW(MakePolicy("composite:noise=0.2:horizon=0.3"));
  Loop usual("noise_scale:scale=1", {1, 2}, 16), doubled("noise_scale:scale=2", {1, 2}, 16);
  usual.Run(30);
  doubled.Run(30);
  EXPECT_NEAR(doubled.global_batch() / usual.global_batch(), 2, 0.3);
}

TEST(MakePolicyTest, AWrongConstantIsNamedWithWhatIsAllowed) {
  const auto message = [](std::string_view name) -> std::string {
    try {
      MakePolicy(name);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("goodput:stride=2"), testing::HasSubstr("scale, step, gain"));
  EXPECT_THAT(message("goodput:step=wide"), testing::HasSubstr("scale, step, gain"));
  EXPECT_THAT(message("goodput:step"), testing::HasSubstr("scale, step, gain"));
  EXPECT_THAT(message("goodput:step=0.5"), testing::HasSubstr("[1, 1000]"));
  EXPECT_THAT(message("greedy"), testing::HasSubstr("composite"));
}

}  // namespace
}  // namespace dynamix
