#include "dynamix/cli/closest.h"

#include <gtest/gtest.h>

namespace dynamix {
namespace {

TEST(ClosestTest, CountsLettersInsertedLeftOutChangedAndSwapped) {
  EXPECT_EQ(EditDistance("goodput", "goodput"), 0);
  EXPECT_EQ(EditDistance("goodptu", "goodput"), 1);
  EXPECT_EQ(EditDistance("goput", "goodput"), 2);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("", "base"), 4);
  EXPECT_EQ(EditDistance("base", ""), 4);
}

TEST(ClosestTest, NamesTheNearestChoiceOrNone) {
  const std::vector<std::string> choices = {"static", "balanced", "base", "goodput"};
  EXPECT_EQ(DidYouMean("balancd", choices), "; did you mean balanced?");
  EXPECT_EQ(DidYouMean("bsae", choices), "; did you mean base?");
  EXPECT_EQ(DidYouMean("adam", choices), "");
  EXPECT_EQ(DidYouMean("anything", {}), "");
  EXPECT_EQ(DidYouMean("x", {"ab"}), "");
  EXPECT_EQ(DidYouMean("data", {"models", "datasets"}), "; did you mean datasets?");
  EXPECT_EQ(DidYouMean("go", {"goodput"}), "");
}

}  // namespace
}  // namespace dynamix
