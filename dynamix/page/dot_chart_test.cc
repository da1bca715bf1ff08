#include "dynamix/page/dot_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DotChartTest, PutsEqualRatiosAtDifferentHeights) {
  const std::string svg = RenderDots(
      {.title = "t", .rows = {{.name = "p", .dots = {{0.5, "a"}, {0.5, "b"}, {0.5, "c"}}}}});
  std::set<std::string> heights;
  for (std::size_t at = svg.find("cy=\""); at != std::string::npos; at = svg.find("cy=\"", at + 1))
    heights.insert(svg.substr(at, 9));
  EXPECT_EQ(heights.size(), 4u);  // three dots and the mean
}

TEST(DotChartTest, AFileOfItsOwnHasItsTitleItsStyleAndNothingToLoad) {
  const DotChart chart{
      .title = "time < static's",
      .rows = {{.name = "p", .dots = {{0.5, "a"}}, .mean = 0.5, .low = 0.4, .high = 0.6}}};
  const std::string svg = RenderDotsFile(chart);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr(">time &lt; static"));
  EXPECT_THAT(svg, HasSubstr("--c0:"));
  EXPECT_THAT(svg, Not(HasSubstr("url(")));
  EXPECT_THAT(RenderDots(chart), Not(HasSubstr("--c0:")));
}

TEST(DotChartTest, ALongNameGetsTheRoomItNeeds) {
  const auto first_dot = [](const std::string& name) {
    const std::string svg =
        RenderDots({.title = "t", .rows = {{.name = name, .dots = {{0.71, "a"}}}}});
    return std::stod(svg.substr(svg.find("cx=\"") + 4));
  };
  EXPECT_GT(first_dot("a policy with a long name, 1,024 workers"), first_dot("short") + 50);
}

}  // namespace
}  // namespace dynamix
