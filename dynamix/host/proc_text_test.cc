#include "dynamix/host/proc_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dynamix {
namespace {

TEST(ProcTextTest, FindsTheNumberOfTheWholeKeyOnly) {
  const char* text = "usage_usec_total 9\nusage_usec 12\nMemTotal:       2048 kB\nbad x\n";
  EXPECT_EQ(NumberAfter(text, "usage_usec"), 12U);
  EXPECT_EQ(NumberAfter(text, "MemTotal:"), 2048U);
  EXPECT_EQ(NumberAfter(text, "bad"), std::nullopt);
  EXPECT_EQ(NumberAfter(text, "absent"), std::nullopt);
}

TEST(ProcTextTest, NoLimitIsNoNumber) {
  EXPECT_EQ(WholeNumber("123\n"), 123U);
  EXPECT_EQ(WholeNumber("max\n"), std::nullopt);
  EXPECT_EQ(WholeNumber("-1\n"), std::nullopt);
  EXPECT_EQ(WholeNumber(""), std::nullopt);
}

TEST(ProcTextTest, ReadsAProcessWhoseNameLooksLikeTheEndOfAName) {
  const auto stat = ParseProcessStat(
      "42 (a) R 1 (b) ) S 7 42 42 0 -1 4194560 100 200 3 4 50 60 70 80 20 0 1 0 12345 1 2\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->major_faults, 7U);
  EXPECT_EQ(stat->waited_children_ticks, 150U);
  EXPECT_FALSE(ParseProcessStat("42 (short) S 7 42"));
  EXPECT_FALSE(ParseProcessStat("no name at all"));
}

TEST(ProcTextTest, PressureIsTheTotalOfSomeInSeconds) {
  EXPECT_DOUBLE_EQ(*ParsePressureSeconds("some avg10=6.08 avg60=2.47 avg300=1.82 total=31655193\n"
                                         "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
                   31.655193);
  EXPECT_FALSE(ParsePressureSeconds("full avg10=0.00 total=5\n"));
}

TEST(ProcTextTest, ReadsInterfacesAlsoWhenTheNumberTouchesTheColon) {
  const auto interfaces = ParseInterfaces(
      "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n"
      "    lo:   100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
      "eth0:7 1 0 0 0 0 0 0 9 2 0 0 0 0 0 0\n  cut: 1 2\n");
  ASSERT_EQ(interfaces.size(), 2U);
  EXPECT_EQ(interfaces[0].name, "lo");
  EXPECT_EQ(interfaces[0].received, 100U);
  EXPECT_EQ(interfaces[1].sent, 9U);
}

TEST(ProcTextTest, FindsTcpColumnsByName) {
  const auto segments =
      ParseTcpSegments("Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs New RetransSegs\nTcp: -1 500 3 4\n");
  ASSERT_TRUE(segments);
  EXPECT_EQ(segments->sent, 500U);
  EXPECT_EQ(segments->retransmitted, 4U);
  EXPECT_FALSE(ParseTcpSegments("Tcp: OutSegs\nTcp: 1\n"));
}

TEST(ProcTextTest, TellsVersionTwoFromVersionOneCgroups) {
  const auto lines = ParseProcessCgroups("2:cpu,cpuacct:/a\n0::/b:c\nbroken\n1:x:no-slash\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].controllers, "cpu,cpuacct");
  EXPECT_EQ(lines[1].controllers, "");
  EXPECT_EQ(lines[1].path, "/b:c");
}

TEST(ProcTextTest, ResolvesEscapedMountPoints) {
  const auto mounts = ParseMounts("cgroup2 /a\\040b cgroup2 rw,relatime 0 0\nshort line\n");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].point, "/a b");
  EXPECT_EQ(mounts[0].type, "cgroup2");
}

TEST(ProcTextTest, ListsProcessesAndSocketInodes) {
  EXPECT_THAT(ParseProcessList("12\n0\nx\n34\n"), testing::ElementsAre(12, 34));
  EXPECT_EQ(ParseSocketInode("socket:[12345]"), 12345U);
  EXPECT_EQ(ParseSocketInode("pipe:[12345]"), std::nullopt);
  EXPECT_EQ(ParseSocketInode("socket:[]"), std::nullopt);
}

}  // namespace
}  // namespace dynamix
