#include "dynamix/job/timeline.h"

#include <gtest/gtest.h>

#include <limits>

namespace dynamix {
namespace {

TEST(TimelineTest, EventsMultiplyAddUpAndEnd) {
  const Node node{.speed = 2, .bandwidth_mbps = 100, .loss = 0.01};
  const std::vector<TimedEvent> events = {{EventKind::kSlowdown, 0, 1, 4, 2},
                                          {EventKind::kSlowdown, 0, 2, 3, 5},
                                          {EventKind::kBandwidth, 0, 2, 9, 0.1},
                                          {EventKind::kLoss, 0, 2, 3, 0.02},
                                          {EventKind::kSlowdown, 1, 0, 9, 100}};
  EXPECT_EQ(NodeAt(node, events, 0, 0.5).speed, 2);
  const Node busy = NodeAt(node, events, 0, 2);
  EXPECT_DOUBLE_EQ(busy.speed, 0.2);
  EXPECT_DOUBLE_EQ(busy.bandwidth_mbps, 10);
  EXPECT_DOUBLE_EQ(busy.loss, 0.03);
  EXPECT_EQ(NodeAt(node, events, 0, 3).speed, 1);
  EXPECT_EQ(NodeAt(node, events, 0, 9).bandwidth_mbps, 100);
}

TEST(TimelineTest, ChangesAreOrderedAndOfTheKindsAsked) {
  const double ever = std::numeric_limits<double>::infinity();
  const std::vector<TimedEvent> events = {{EventKind::kLoss, 0, 5, ever, 0.1},
                                          {EventKind::kBandwidth, 1, 1, 5, 0.5},
                                          {EventKind::kSlowdown, 0, 2, 3, 2}};
  EXPECT_EQ(ChangesOf(events, {EventKind::kLoss, EventKind::kBandwidth}),
            (std::vector<double>{1, 5}));
}

}  // namespace
}  // namespace dynamix
