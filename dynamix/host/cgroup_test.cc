#include "dynamix/host/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "dynamix/core/input_error.h"
#include "dynamix/host/testing/test_host.h"

namespace dynamix {
namespace {

using test::Child;

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
  }
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST_F(CgroupTest, HoldsTheProcessThatEnteredAndGoesWithTheLastWorker) {
  const std::string job = test::UniqueName();
  auto first = Cgroup::Create(job + "/rank-0"), second = Cgroup::Create(job + "/rank-1");
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string folder = JobCgroup(job);
  EXPECT_EQ(first.value().path(), folder + "/rank-0");
  {
    Child child({nullptr, &first.value()}, [](test::Channel& test) { test.Receive<bool>(); });
    EXPECT_THAT(ProcessesIn(first.value().path()), testing::ElementsAre(child.pid()));
    EXPECT_THAT(ProcessesIn(folder), testing::ElementsAre(child.pid())) << "and below";
    EXPECT_EQ(FindCgroups(child.pid()).unified, first.value().path());
    EXPECT_FALSE(IsRootCgroup(first.value().path()));
  }
  Cgroup removed = std::move(first).value();
  EXPECT_TRUE(removed.Remove().ok());
  EXPECT_TRUE(removed.Remove().ok()) << "twice is once";
  EXPECT_TRUE(Exists(folder));
  { const Cgroup gone = std::move(second).value(); }
  EXPECT_FALSE(Exists(folder));
}

TEST_F(CgroupTest, RemovalOfAnInhabitedOneIsAnError) {
  Cgroup cgroup = test::MakeCgroup();
  Child child({}, [](test::Channel& test) { test.Receive<bool>(); });
  EXPECT_TRUE(cgroup.Enter(child.pid()).ok());
  EXPECT_FALSE(cgroup.Remove().ok());
  child.Kill();
  EXPECT_TRUE(cgroup.Remove().ok());
  EXPECT_FALSE(Exists(cgroup.path()));
}

TEST_F(CgroupTest, LimitGoesWithItToo) {
  std::string twin;
  {
    Cgroup cgroup = test::MakeCgroup();
    if (Status limited = cgroup.LimitCpus(0.5); !limited.ok())
      GTEST_SKIP() << "needs a cpu controller: " << limited.error();
    twin = FindCgroups(cgroup.path()).cpu;
    EXPECT_TRUE(Exists(twin));
  }
  EXPECT_FALSE(Exists(twin));
}

TEST(CgroupNameTest, OnlyPlainNamesAreTaken) {
  for (const char* name : {"", "/", "a/", "/a", "a/b/c", "..", "../x", "a b", "x\n"})
    EXPECT_THROW((void)JobCgroup(name), InputError) << name;
  EXPECT_NO_THROW((void)JobCgroup("job-1.a/rank_0"));
}

TEST(CgroupNameTest, NothingIsInAFolderThatDoesNotExist) {
  EXPECT_TRUE(ProcessesIn("/nowhere").empty());
}

}  // namespace
}  // namespace dynamix
