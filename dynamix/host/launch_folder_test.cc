#include "dynamix/host/launch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;

TEST(LaunchFolderTest, IsForItsOwnerOnlyAndGoneWithTheObject) {
  std::string path;
  {
    const LaunchFolder folder;
    path = folder.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    std::ofstream(path + "/store") << "something";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(LaunchFolderTest, OnlyThoseOfTheDeadAreRemoved) {
  // Others on this machine may clean up at the same moment.
  std::string own = (fs::temp_directory_path() / "dynamix_folders_XXXXXX").string();
  ASSERT_NE(mkdtemp(own.data()), nullptr);
  setenv("TMPDIR", own.c_str(), 1);
  const LaunchFolder living;
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const LaunchFolder folder;
    std::ofstream(folder.path() + "/store") << "something";
    (void)!write(pipes[1], folder.path().c_str(), folder.path().size());
    pause();
    _exit(0);
  }
  char text[4096];
  const ssize_t size = read(pipes[0], text, sizeof text);
  ASSERT_GT(size, 0);
  const std::string left(text, static_cast<std::size_t>(size));
  EXPECT_THAT(RemoveLeftLaunchFolders(), Not(Contains(left))) << "its launcher lives";
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  EXPECT_THAT(RemoveLeftLaunchFolders(), Contains(left));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(living.path()));
  close(pipes[0]);
  close(pipes[1]);
  unsetenv("TMPDIR");
  fs::remove_all(own);
}

}  // namespace
}  // namespace dynamix
