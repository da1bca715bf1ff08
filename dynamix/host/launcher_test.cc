#include "dynamix/host/launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dynamix_launch_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static LaunchOptions Shell(int ranks, const std::string& script) {
    return {.ranks = ranks, .command = {"sh", "-c", script}, .grace_s = 100};
  }
  // The exit code of a launcher in a process of its own, once it has ended; -1: by a signal.
  static int CodeOf(pid_t launcher) {
    int status = 0;
    waitpid(launcher, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path folder_;
};

TEST_F(LauncherTest, RanksSeeTorchrunsEnvironment) {
  const std::string out = (folder_ / "rank").string();
  EXPECT_EQ(Launch(Shell(3,
                         "echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $OMP_NUM_THREADS "
                         "> " +
                             out + "$RANK; test $MASTER_PORT -gt 0")),
            0);
  EXPECT_EQ(Read("rank0"), "0 3 0 127.0.0.1 1\n");
  EXPECT_EQ(Read("rank2"), "2 3 2 127.0.0.1 1\n");
}

TEST_F(LauncherTest, OutputHasRankPrefixesAndKeepsItsStream) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(Shell(2, "printf 'one\\ntwo'; echo err >&2")), 0);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_THAT(out, testing::HasSubstr("[0] one\n"));
  EXPECT_THAT(out, testing::HasSubstr("[1] two\n"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("[1] err\n"));
}

TEST_F(LauncherTest, OneFailureStopsAllAndGivesItsExitCode) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(Shell(3, "if [ $RANK = 1 ]; then exit 7; fi; sleep 100")), 7);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("rank 1 ended"));
}

TEST_F(LauncherTest, ElasticRanksGoOnWithoutOneThatIsLost) {
  LaunchOptions options = Shell(3, "if [ $RANK = 1 ]; then exit 7; fi; sleep 0.3");
  options.elastic = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(options), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("rank 1 ended with exit code 7; the others go on\n"));
  options.command.back() = "exit 7";
  EXPECT_EQ(Launch(options), 7) << "nobody is left";
}

TEST_F(LauncherTest, ALostRankIsStartedAgainUpToTheLimitAndIsToldSo) {
  const std::string out = (folder_ / "restarts").string();
  LaunchOptions options =
      Shell(2, "if [ $RANK = 1 ]; then echo $DYNAMIX_RESTARTS >> " + out +
                   "; kill -9 $$; fi; while [ ! -e " + out + " ] || " + "[ $(wc -l < " + out +
                   ") -lt 3 ]; do sleep 0.01; done; " + "sleep 0.3");
  options.elastic = true;
  options.max_restarts = 2;
  options.restart_pause_s = 0.01;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(options), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the others go on, and it is started again in 0.0 s\n"));
  EXPECT_EQ(Read("restarts"), "0\n1\n2\n");
}

TEST_F(LauncherTest, ARankThatIsAwayIsKilledAndStartedAgainWhenItIsBack) {
  const std::string out = (folder_ / "starts").string();
  LaunchOptions options =
      Shell(2, "if [ $RANK = 1 ]; then echo $DYNAMIX_RESTARTS >> " + out +
                   "; test $DYNAMIX_RESTARTS = 1 || sleep 100; exit 0; fi; while [ ! -e " + out +
                   " ] || [ $(wc -l < " + out + ") -lt 2 ]; do sleep 0.01; done");
  options.elastic = true;
  // Away from its first words on, for ten questions.
  int asked = 0;
  options.away = [&](int rank) { return rank == 1 && fs::exists(out) && ++asked <= 10; };
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(options), 0);
  EXPECT_EQ(Read("starts"), "0\n1\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dynamix launch: rank 1 leaves, as its cluster says\n"
            "dynamix launch: rank 1 comes back, as its cluster says\n");
}

TEST_F(LauncherTest, AnAbsenceOfEverybodyIsPutOff) {
  LaunchOptions options = Shell(2, "sleep 0.5");
  options.elastic = true;
  options.away = [](int) { return true; };
  EXPECT_EQ(Launch(options), 0);
}

TEST_F(LauncherTest, RanksThatIgnoreTheRequestAreKilled) {
  LaunchOptions options = Shell(2,
                                "trap '' TERM; if [ $RANK = 1 ]; then exit 7; fi; "
                                "while true; do sleep 0.01; done");
  options.grace_s = 0.1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(options), 7);
  testing::internal::GetCapturedStderr();
}

TEST_F(LauncherTest, ASignalToARankIsToldAsSuch) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(Shell(1, "kill -9 $$")), 128 + SIGKILL);
  testing::internal::GetCapturedStderr();
}

TEST_F(LauncherTest, SignalsReachTheRanks) {
  const std::string out = (folder_ / "got").string();
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(Launch(Shell(1, "trap 'echo term > " + out + "; exit 0' TERM; touch " + out +
                              ".ready; while true; do sleep 0.01; done")));
  }
  while (!fs::exists(out + ".ready")) usleep(1000);
  kill(pid, SIGTERM);
  EXPECT_EQ(CodeOf(pid), 128 + SIGTERM);
  EXPECT_EQ(Read("got"), "term\n");
}

TEST_F(LauncherTest, AWordToTheRanksIsPassedOnAndEndsNobody) {
  const std::string out = (folder_ / "got").string();
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(Launch(Shell(2, "trap 'echo usr1 > " + out + "$RANK' USR1; touch " + out +
                              ".ready$RANK; while [ ! -e " + out + "0 -o ! -e " + out +
                              "1 ]; do sleep 0.01; done")));
  }
  while (!fs::exists(out + ".ready0") || !fs::exists(out + ".ready1")) usleep(1000);
  kill(pid, SIGUSR1);
  EXPECT_EQ(CodeOf(pid), 0);
  EXPECT_EQ(Read("got1"), "usr1\n");
}

TEST_F(LauncherTest, RanksGoOnWhenNobodyReadsTheirOutput) {
  const std::string out = (folder_ / "got").string();
  const pid_t pid = fork();
  if (pid == 0) {
    int ends[2];
    if (pipe(ends) != 0) _exit(99);
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    _exit(Launch(Shell(
        1, "trap 'echo pipe; exit 3' PIPE; echo words; echo more words; echo done > " + out)));
  }
  EXPECT_EQ(CodeOf(pid), 0);
  EXPECT_EQ(Read("got"), "done\n");
}

// Nobody reads the pipe, but it is open: writing to it would wait.
TEST_F(LauncherTest, SignalsAreServedWhileTheReaderOfTheOutputStalls) {
  const std::string out = (folder_ / "got").string();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    // At the end it says more than any pipe holds, and then saves.
    _exit(Launch(Shell(2, "trap 'head -c 4000000 /dev/zero | tr \"\\0\" x; echo saved > " + out +
                              "$RANK; exit 0' TERM; touch " + out +
                              ".ready$RANK; while true; do echo words words words words; done")));
  }
  while (!fs::exists(out + ".ready0") || !fs::exists(out + ".ready1")) usleep(1000);
  // Full: what was written last stays the same.
  for (int last = -1, now = 0; last != now || now == 0; usleep(50000)) {
    last = now;
    ASSERT_EQ(ioctl(ends[0], FIONREAD, &now), 0);
  }
  kill(pid, SIGTERM);
  EXPECT_EQ(CodeOf(pid), 128 + SIGTERM);
  EXPECT_EQ(Read("got0"), "saved\n");
  EXPECT_EQ(Read("got1"), "saved\n");
  for (const int end : ends) close(end);
}

TEST_F(LauncherTest, ASlowReaderGetsEveryWord) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    _exit(Launch(Shell(1, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end")));
  }
  close(ends[1]);
  usleep(100000);  // the pipe is full meanwhile
  std::string text(1 << 16, ' '), all;
  for (ssize_t count; (count = read(ends[0], text.data(), text.size())) > 0;)
    all.append(text.data(), static_cast<std::size_t>(count));
  EXPECT_EQ(CodeOf(pid), 0);
  EXPECT_EQ(std::count(all.begin(), all.end(), 'x'), 3000000);
  EXPECT_TRUE(all.ends_with("[0] the end\n"));
  close(ends[0]);
}

TEST_F(LauncherTest, AStoppedRankEndsWithTheOthers) {
  const std::string out = (folder_ / "got").string();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch(Shell(2, "if [ $RANK = 1 ]; then trap 'echo term > " + out +
                                "; exit 0' TERM; echo $$ > " + out + ".pid; touch " + out +
                                ".ready; kill -STOP $$; while true; do sleep 0.01; done; fi; "
                                "while [ ! -e " +
                                out +
                                ".ready ]; do sleep 0.01; done; "
                                "while ! grep -q '^State:.T' /proc/$(cat " +
                                out + ".pid)/status; do sleep 0.01; done; exit 7")),
            7);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(Read("got"), "term\n");
}

TEST_F(LauncherTest, RanksFindEachOtherInAFolderOfTheirOwn) {
  const std::string out = (folder_ / "store").string();
  EXPECT_EQ(Launch(Shell(2, "stat -c %a $(dirname $DYNAMIX_STORE) > " + out +
                                "$RANK; dirname $DYNAMIX_STORE >> " + out + "$RANK")),
            0);
  EXPECT_TRUE(Read("store0").starts_with("700\n"));
  EXPECT_EQ(Read("store0"), Read("store1"));
  EXPECT_FALSE(fs::exists(Read("store0").substr(4, Read("store0").size() - 5))) << "gone";
}

TEST_F(LauncherTest, WhatARankLeavesBehindHoldsNobodyUp) {
  const std::string out = (folder_ / "left").string();
  testing::internal::CaptureStdout();
  EXPECT_EQ(
      Launch(Shell(1, "setsid sh -c 'echo $$ > " + out + "; exec sleep 1000' & while [ ! -s " +
                          out + " ]; do sleep 0.01; done; printf last")),
      0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "[0] last\n");
  EXPECT_EQ(kill(std::stoi(Read("left")), SIGKILL), 0);
}

TEST_F(LauncherTest, LinesWithoutAnEndArePassedOnInPieces) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(Launch(Shell(1, "head -c 1000000 /dev/zero | tr '\\0' x")), 0);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(out.begin(), out.end(), 'x'), 1000000);
  EXPECT_GT(std::count(out.begin(), out.end(), '\n'), 5);
}

TEST_F(LauncherTest, ARankThatReadsTheTerminalFindsNothing) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();  // the terminal opened next is this session's
    if (dup2(open(name.c_str(), O_RDWR), STDIN_FILENO) < 0) _exit(99);
    _exit(Launch(Shell(1, "cat")));
  }
  EXPECT_EQ(CodeOf(pid), 0);
  close(terminal);
}

TEST_F(LauncherTest, ProgramsThatDoNotExistAreNamed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Launch({.ranks = 1, .command = {"/no/such/program"}}), 127);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("/no/such/program"));
}

TEST_F(LauncherTest, OptionsAreValidated) {
  EXPECT_THROW(Launch({.ranks = 0, .command = {"true"}}), InputError);
  EXPECT_THROW(Launch({.ranks = 1}), InputError);
}

}  // namespace
}  // namespace dynamix
