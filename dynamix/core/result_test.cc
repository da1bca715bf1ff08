#include "dynamix/core/result.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Error{"odd"};
  return x / 2;
}

TEST(ResultTest, HoldsAValueOrAnError) {
  EXPECT_EQ(Half(4).value(), 2);
  EXPECT_FALSE(Half(3).ok());
  EXPECT_EQ(Half(3).error(), "odd");
}

TEST(ResultTest, TheWrongQuestionIsABug) {
  EXPECT_THROW(Half(3).value(), CheckFailure);
  const Result<int> good = Half(4);
  EXPECT_THROW(good.error(), CheckFailure);
}

TEST(CheckTest, SaysWhatAndWhere) {
  try {
    DYNAMIX_CHECK(1 > 2, "order of numbers");
    FAIL();
  } catch (const CheckFailure& failure) {
    const std::string what = failure.what();
    EXPECT_NE(what.find("order of numbers"), std::string::npos);
    EXPECT_NE(what.find("result_test.cc"), std::string::npos);
  }
}

TEST(InputErrorTest, NamesFieldValueAndRange) {
  try {
    RequireInRange("speed", -1.5, 0.0, 8.0);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "speed = -1.5 is not allowed: expected a value in [0, 8]");
  }
  EXPECT_THROW(RequireInRange("x", std::nan(""), 0.0, 1.0), InputError);
}

}  // namespace
}  // namespace dynamix
