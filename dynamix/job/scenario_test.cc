#include "dynamix/job/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::string_view kMixed = R"(
description = "two kinds"
workers = 6
start_batch = 32
[bounds]
min = 8
max = 512
[[node]]
speed = 4.0
[[node]]
count = 2
bandwidth_mbps = 100
[[event]]
kind = "slowdown"
target = "fastest"
at = 0.1
duration = 0.2
every = 0.5
factor = 3
)";

std::vector<double> Speeds(const std::vector<Node>& nodes) {
  std::vector<double> speeds;
  for (const Node& node : nodes) speeds.push_back(node.speed);
  return speeds;
}

Scenario WithSpeeds(const std::vector<double>& speeds) {
  Scenario scenario;
  scenario.nodes.clear();
  for (const double speed : speeds) {
    scenario.nodes.push_back({});
    scenario.nodes.back().node.speed = speed;
  }
  return scenario;
}

TEST(ScenarioTest, ReadsAFile) {
  const Scenario scenario = ParseScenario(kMixed, "mixed");
  EXPECT_EQ(scenario.workers, 6);
  EXPECT_EQ(scenario.bounds.max, 512);
  ASSERT_EQ(scenario.nodes.size(), 2u);
  EXPECT_EQ(scenario.nodes[1].count, 2);
  ASSERT_EQ(scenario.events.size(), 1u);
  EXPECT_EQ(scenario.events[0].factor, 3);
}

TEST(ScenarioTest, WhatIsWrittenReadsBackTheSame) {
  const Scenario scenario = ParseScenario(kMixed, "mixed");
  const std::string text = FormatScenario(scenario);
  EXPECT_EQ(FormatScenario(ParseScenario(text, "again")), text);
}

TEST(ScenarioTest, ThePatternRepeatsWithMoreWorkers) {
  const Scenario scenario = WithSpeeds({4, 2, 1});
  EXPECT_EQ(Speeds(ResolveNodes(scenario, 7)), (std::vector<double>{4, 2, 1, 4, 2, 1, 4}));
}

TEST(ScenarioTest, FewWorkersAreSpreadOverThePattern) {
  const Scenario scenario = WithSpeeds({8, 4, 2, 1});
  EXPECT_EQ(Speeds(ResolveNodes(scenario, 2)), (std::vector<double>{8, 1}));
  EXPECT_EQ(Speeds(ResolveNodes(scenario, 3)).front(), 8);
  EXPECT_EQ(Speeds(ResolveNodes(scenario, 3)).back(), 1);
  EXPECT_EQ(Speeds(ResolveNodes(scenario, 1)), (std::vector<double>{8}));
}

TEST(ScenarioTest, EventsRepeatUntilTheHorizon) {
  Scenario scenario = WithSpeeds({1});
  scenario.events = {{.at = 1, .duration = 0.5, .every = 2}};
  const auto events = ResolveEvents(scenario, ResolveNodes(scenario, 4), 10, 6, 1);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_DOUBLE_EQ(events[0].begin_s, 10);
  EXPECT_DOUBLE_EQ(events[0].end_s, 15);
  EXPECT_DOUBLE_EQ(events[2].begin_s, 50);
}

TEST(ScenarioTest, EventsHitTheirShareOfTheWorkers) {
  Scenario scenario = WithSpeeds({1, 2, 4, 8});
  scenario.events = {{.target = EventTarget::kFastest, .share = 0.25}};
  auto events = ResolveEvents(scenario, ResolveNodes(scenario, 8), 1, 1, 1);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].worker, 3);
  EXPECT_EQ(events[1].worker, 7);

  scenario.events = {{.target = EventTarget::kSlowest, .share = 0.01}};
  events = ResolveEvents(scenario, ResolveNodes(scenario, 8), 1, 1, 1);
  ASSERT_EQ(events.size(), 1u) << "at least one worker";
  EXPECT_EQ(events[0].worker, 0);

  scenario.events = {{.target = EventTarget::kSpread, .share = 0.5}};
  events = ResolveEvents(scenario, ResolveNodes(scenario, 8), 1, 1, 1);
  std::set<int> workers;
  for (const TimedEvent& event : events) workers.insert(event.worker);
  EXPECT_EQ(workers, (std::set<int>{0, 2, 4, 6}));
}

TEST(ScenarioTest, RandomTargetsFollowTheSeed) {
  Scenario scenario = WithSpeeds({1});
  scenario.events = {{.target = EventTarget::kRandom, .duration = 1, .every = 1}};
  const auto workers = [&](std::uint64_t seed) {
    std::vector<int> hit;
    for (const auto& event : ResolveEvents(scenario, ResolveNodes(scenario, 16), 1, 20, seed))
      hit.push_back(event.worker);
    return hit;
  };
  EXPECT_EQ(workers(1), workers(1));
  EXPECT_NE(workers(1), workers(2));
}

TEST(ScenarioTest, ALateJoinIsAnAbsenceFromTheStart) {
  Scenario scenario = WithSpeeds({1});
  scenario.events = {{.kind = EventKind::kJoin, .at = 3}};
  const auto events = ResolveEvents(scenario, ResolveNodes(scenario, 4), 2, 9, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kLeave);
  EXPECT_EQ(events[0].begin_s, 0);
  EXPECT_EQ(events[0].end_s, 6);
}

TEST(ScenarioTest, RefusesWhatCannotBe) {
  const auto refuse = [](std::string_view text, const std::string& message) {
    EXPECT_THAT([&] { ParseScenario(text, "s.toml"); },
                ThrowsMessage<InputError>(HasSubstr(message)));
  };
  refuse("workers = 0", "s.toml:1: workers = 0");
  refuse(
      "clock = \"seconds\"\ntime_budget = 30\n[[event]]\nkind = \"slowdown\"\nfactor = 2\nat = 40",
      "event.at, with this time_budget, = 40 is not allowed: expected a value in [0, 30]");
  refuse("node = []", "at least one [[node]]");
  refuse("start_batch = 2\n[bounds]\nmin = 8",
         "s.toml: start_batch = 2 is not allowed: expected 0 or a value in [8, 1024], its bounds");
  refuse("[[event]]\nkind = 'slowdown'\nfactor = 0.5", "event.factor = 0.5");
  refuse("[[event]]\nkind = 'bandwidth'\nfactor = 2", "share of the bandwidth");
  refuse("[[event]]\nkind = 'loss'\nfactor = 0.9", "event.factor = 0.9");
  refuse("[[event]]\nkind = 'slowdown'\nduration = 2\nevery = 1", "do not overlap");
  refuse("[[event]]\nkind = 'fire'", "event[0].kind = 'fire'");
  refuse("[[node]]\nsped = 2", "node[0].sped is not a known key");
}

}  // namespace
}  // namespace dynamix
