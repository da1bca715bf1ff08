#include "dynamix/cli/monitor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "dynamix/cli/monitor_view.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/worker_cgroups.h"
#include "dynamix/monitor/testing/cannot_load_ebpf.h"

namespace dynamix {
namespace {

using testing::HasSubstr;

std::string Command(const std::string& arguments) {
  CLI::App app;
  AddMonitorCommand(app);
  spdlog::set_level(spdlog::level::off);  // goes to stdout unless main.cc moves it
  testing::internal::CaptureStdout();
  try {
    app.parse("monitor " + arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

struct stat Output() {
  struct stat output {};
  fstat(STDOUT_FILENO, &output);
  return output;
}

TEST(MonitorCommandTest, WatchesAProcess) {
  const auto line = nlohmann::json::parse(
      Command("--pid " + std::to_string(getpid()) + " --once --json --interval 0.1"));
  EXPECT_EQ(line["worker"], "pid " + std::to_string(getpid()));
  EXPECT_GE(line["seconds"], 0.1);
  EXPECT_GT(line["host"]["memory_limit_bytes"], 0);
  EXPECT_TRUE(line["device"]["use"].is_null());
  EXPECT_THAT(Command("--pid " + std::to_string(getpid()) + " --once --interval 0.1"),
              HasSubstr("sent Mbit/s"));
}

TEST(MonitorCommandTest, ShowsOneRowPerWorkerOfAJob) {
  if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
  const std::string job = test::UniqueName();
  auto first = Cgroup::Create(job + "/rank-0"), second = Cgroup::Create(job + "/rank-1");
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string table = Command("--job " + job + " --once --interval 0.1");
  EXPECT_THAT(table, HasSubstr("rank-0"));
  EXPECT_THAT(table, HasSubstr("rank-1"));
  const std::string lines = Command("--cgroup " + first.value().path() +
                                    " --once --json --interval 0.1 --tier inet_diag");
  EXPECT_EQ(nlohmann::json::parse(lines)["tier"], "inet_diag");
}

TEST(MonitorCommandTest, ListsTheJobsOfThisMachineAndFindsThemByName) {
  if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
  const std::string name = test::UniqueName();
  const WorkerCgroups cgroups("launch", 2, name);
  ASSERT_EQ(cgroups.error(), "");
  const auto jobs = nlohmann::json::parse(Command("--json"));
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const auto& job) { return job["name"] == name; });
  ASSERT_NE(found, jobs.end()) << jobs;
  EXPECT_EQ((*found)["job"], "launch-" + std::to_string(getpid()));
  EXPECT_EQ((*found)["workers"], 2);
  EXPECT_THAT(Command(""), HasSubstr(name));
  EXPECT_THAT(Command("--job " + name + " --once --interval 0.1"), HasSubstr("rank-1"));
}

TEST(MonitorCommandTest, RowsCanBeOrderedAndFitTheTerminal) {
  MonitorWindow idle, busy;
  idle.host.cpu_use = 0.1;
  busy.host.cpu_use = 0.9;
  const std::vector<WorkerWindow> workers = {{"a", idle}, {"none", {}}, {"b", busy}};
  const std::string table = MonitorTable(workers, "cpu", 40);
  EXPECT_LT(table.find("\nb "), table.find("\na "));
  EXPECT_LT(table.find("\na "), table.find("\nnone ")) << "what was not measured comes last";
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 40u) << line;
  EXPECT_THAT(table, HasSubstr("memory GiB")) << "in a block further down";
}

TEST(MonitorCommandTest, EndsWithTheJob) {
  if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
  auto cgroup = Cgroup::Create(test::UniqueName());
  ASSERT_TRUE(cgroup.ok());
  const std::string path = cgroup.value().path();
  // Removed once a line is in the file that captures the output.
  const ino_t uncaptured = Output().st_ino;
  std::thread remover([&] {
    while (Output().st_ino == uncaptured || Output().st_size == 0) usleep(1000);
    rmdir(path.c_str());
  });
  EXPECT_THAT(Command("--cgroup " + path + " --interval 0.1 --json --tier inet_diag"),
              HasSubstr("\"worker\""));
  remover.join();
}

TEST(MonitorCommandTest, GivesUpItsCapabilitiesOnceAttached) {
  if (auto reason = test::CannotLoadEbpf()) GTEST_SKIP() << *reason;
  const Cgroup cgroup = test::MakeCgroup();
  test::Child child({}, [&](test::Channel& test) {
    Command("--cgroup " + cgroup.path() + " --once --interval 0.1");
    std::ifstream status("/proc/thread-self/status");
    const std::string text(std::istreambuf_iterator<char>(status), {});
    test.Send(text.find("CapEff:\t0000000000000000") != std::string::npos);
  });
  EXPECT_TRUE(child.channel().Receive<bool>());
}

TEST(MonitorCommandTest, NamesTheFlagThatIsWrong) {
  EXPECT_THROW(Command("--pid 1 --job x"), InputError);
  EXPECT_THROW(Command("--job not-there"), InputError);
  EXPECT_THROW(Command("--cgroup /nowhere"), InputError);
  EXPECT_THROW(Command("--pid 4194304"), InputError);
  EXPECT_THROW(Command("--job ../x"), InputError);
  EXPECT_THROW(Command("--pid 1 --interval 0"), CLI::ValidationError);
}

}  // namespace
}  // namespace dynamix
