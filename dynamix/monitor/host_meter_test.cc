#include "dynamix/monitor/host_meter.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "dynamix/host/testing/test_host.h"
#include "dynamix/monitor/monitor.h"

namespace dynamix {
namespace {

using test::Child;

// A cgroup made of plain files: what the kernel would show, at will.
class Files {
 public:
  Files() : folder_(testing::TempDir() + "/" + test::UniqueName()) {
    std::filesystem::create_directories(folder_ + "/rank-0");
    Write("cgroup.procs", "");
    Write("rank-0/cgroup.procs", std::to_string(getpid()) + "\n");
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  CgroupPaths paths() const {
    const std::string rank = folder_ + "/rank-0";
    return {rank, rank, rank, rank};
  }
  Target target() const { return {.pid = 0, .cgroup = folder_ + "/rank-0"}; }

 private:
  std::string folder_;
};

TEST(HostMeterTest, ReadsVersionTwo) {
  Files files;
  files.Write("rank-0/cpu.stat", "usage_usec 1000000\nthrottled_usec 100000\n");
  files.Write("rank-0/cpu.max", "50000 100000\n");
  files.Write("rank-0/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=1000000\n");
  files.Write("rank-0/memory.max", "1000000\n");
  files.Write("rank-0/memory.current", "990000\n");
  files.Write("rank-0/memory.stat", "anon 1\ninactive_file 10000\n");
  HostMeter meter(files.target(), files.paths(), 100);
  files.Write("rank-0/cpu.stat", "usage_usec 1800000\nthrottled_usec 600000\n");
  files.Write("rank-0/cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=1500000\n");
  const HostWindow window = meter.ReadWindow(102);
  EXPECT_DOUBLE_EQ(window.cpu_seconds, 0.8);
  EXPECT_DOUBLE_EQ(window.allotted_cpus, 0.5);
  EXPECT_NEAR(window.cpu_use, 0.8, 1e-9);
  EXPECT_DOUBLE_EQ(window.cpu_throttled, 0.25);
  EXPECT_DOUBLE_EQ(window.cpu_pressure, 0.25);
  EXPECT_TRUE(IsMissing(window.io_pressure));
  EXPECT_EQ(window.memory_used_bytes, 980000);
  EXPECT_EQ(window.memory_limit_bytes, 1000000);
}

TEST(HostMeterTest, ReadsVersionOne) {
  Files files;
  files.Write("rank-0/cpuacct.usage", "1000000000\n");
  files.Write("rank-0/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 0\n");
  files.Write("rank-0/cpu.cfs_quota_us", "25000\n");
  files.Write("rank-0/cpu.cfs_period_us", "100000\n");
  files.Write("rank-0/memory.limit_in_bytes", "9223372036854771712\n");
  files.Write("rank-0/memory.usage_in_bytes", "990000\n");
  HostMeter meter(files.target(), files.paths(), 0);
  files.Write("rank-0/cpuacct.usage", "1200000000\n");
  files.Write("rank-0/cpu.stat", "nr_periods 9\nnr_throttled 8\nthrottled_time 750000000\n");
  const HostWindow window = meter.ReadWindow(1);
  EXPECT_NEAR(window.cpu_use, 0.8, 1e-9);
  EXPECT_NEAR(window.cpu_throttled, 0.75, 1e-9);
  EXPECT_GT(window.memory_limit_bytes, 1e6) << "no limit there: the host's memory is the limit";
}

TEST(HostMeterTest, AQuotaFurtherUpHoldsTheWorkerBackToo) {
  Files files;
  files.Write("cpu.stat", "usage_usec 0\nthrottled_usec 0\n");
  files.Write("cpu.max", "25000 100000\n");
  files.Write("rank-0/cpu.stat", "usage_usec 0\n");
  files.Write("rank-0/cpu.max", "max 100000\n");
  HostMeter meter(files.target(), files.paths(), 0);
  files.Write("cpu.stat", "usage_usec 0\nthrottled_usec 500000\n");
  const HostWindow window = meter.ReadWindow(1);
  EXPECT_DOUBLE_EQ(window.allotted_cpus, 0.25);
  EXPECT_DOUBLE_EQ(window.cpu_throttled, 0.5);
}

TEST(HostMeterTest, AbsentFilesAreMissingAndNothingElse) {
  const Target target{.pid = 0, .cgroup = "/nowhere"};
  HostMeter meter(target, {}, 0);
  const HostWindow window = meter.ReadWindow(1);
  EXPECT_TRUE(IsMissing(window.cpu_seconds));
  EXPECT_TRUE(IsMissing(window.cpu_use));
  EXPECT_TRUE(IsMissing(window.cpu_throttled));
  EXPECT_TRUE(IsMissing(window.context_switches));
  EXPECT_GT(window.memory_limit_bytes, 0);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Burn(double cpu_seconds) {
  rusage usage{};
  do {
    getrusage(RUSAGE_SELF, &usage);
  } while (static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6 <
           cpu_seconds);
}

TEST(HostMeterTest, CpuTimeOfAProcessTreeIsWhatTheProcessesUsed) {
  const Target self;
  HostMeter meter(self, FindCgroups(0), Now());
  Child child({}, [](test::Channel& test) {
    Burn(0.2);
    test.Send(true);
    test.Receive<bool>();
  });
  ASSERT_TRUE(child.channel().Receive<bool>());
  usleep(1000000);  // new processes are looked for once a second
  const HostWindow window = meter.ReadWindow(Now());
  EXPECT_GE(window.cpu_seconds, 0.19);
  EXPECT_LE(window.cpu_seconds, 0.6);
  EXPECT_GT(window.context_switches, 0);
  EXPECT_GE(window.major_faults, 0);
}

TEST(HostMeterTest, ALimitOfTheProcessIsTheNearestMemoryLimit) {
  Child child({}, [](test::Channel& test) {
    test.Receive<bool>();  // once before the limit: a sanitizer allocates on the way
    test.Send(true);
    test.Receive<bool>();
  });
  child.channel().Send(true);
  ASSERT_TRUE(child.channel().Receive<bool>());
  const rlimit limit{100, 100};  // less than the process has: nearer than any other
  ASSERT_EQ(prlimit(child.pid(), RLIMIT_DATA, &limit, nullptr), 0);
  const Target target{.pid = child.pid()};
  HostMeter meter(target, {}, 0);
  EXPECT_EQ(meter.ReadWindow(1).memory_limit_bytes, 100);
}

TEST(HostMeterTest, TheNearestLimitHasTheGreatestShareInUse) {
  const MemoryUse nearest = Nearest({{10, 100}, {}, {9, 10}, {500, 1000}});
  EXPECT_EQ(nearest.used_bytes, 9);
  EXPECT_EQ(nearest.limit_bytes, 10);
  EXPECT_TRUE(IsMissing(Nearest({}).used_bytes));
}

TEST(HostMeterTest, AMonitorReadsTheHostNoOftenerThanItIsTold) {
  MonitorOptions options;
  options.best_tier = NetworkTier::kNone;
  options.refresh_seconds = 3600;
  Monitor monitor = Monitor::Start(options);
  const double first = monitor.ReadWindow().host.cpu_seconds;
  EXPECT_GT(first, 0);
  EXPECT_EQ(monitor.ReadWindow().host.cpu_seconds, first);
}

TEST(HostMeterTest, AQuotaThrottles) {
  if (auto reason = test::CannotMakeNamespaces()) GTEST_SKIP() << *reason;
  Cgroup cgroup = test::MakeCgroup();
  // So little that also a busy machine gives it.
  if (Status limited = cgroup.LimitCpus(0.02); !limited.ok())
    GTEST_SKIP() << "needs a cpu controller: " << limited.error();
  MonitorOptions options;
  options.target.cgroup = cgroup.path();
  options.best_tier = NetworkTier::kNone;
  Monitor monitor = Monitor::Start(options);
  Child child({nullptr, &cgroup}, [](test::Channel& test) {
    test.Receive<bool>();
    Burn(0.05);
    test.Send(true);
  });
  monitor.ReadWindow();
  child.channel().Send(true);
  ASSERT_TRUE(child.channel().Receive<bool>());
  const MonitorWindow window = monitor.ReadWindow();
  EXPECT_DOUBLE_EQ(window.host.allotted_cpus, 0.02);
  EXPECT_GT(window.HostPart().cpu_throttled, 0.3);
  EXPECT_GT(window.HostPart().cpu_use, 0.5);
  EXPECT_GE(window.host.cpu_seconds, 0.03);
}

}  // namespace
}  // namespace dynamix
