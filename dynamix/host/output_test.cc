#include "dynamix/host/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <sstream>

namespace dynamix {
namespace {

std::string WordDropped(std::int64_t count) { return std::to_string(count) + " dropped\n"; }

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    old_ = signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) close(end);
    signal(SIGPIPE, old_);
  }
  void CloseReader() {
    close(ends_[0]);
    ends_[0] = -1;
  }
  // Everything written until the writer closes.
  std::string ReadAll() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t count; (count = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
  }

  std::array<int, 2> ends_{-1, -1};
  void (*old_)(int) = nullptr;
};

TEST_F(OutputTest, WritesWhatFitsAndNeverWaits) {
  const std::string text(1 << 20, 'x');
  const std::size_t first = WriteWithoutWaiting(ends_[1], text);
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, text.size());
  EXPECT_EQ(WriteWithoutWaiting(ends_[1], text), 0u);
  CloseReader();
  EXPECT_EQ(WriteWithoutWaiting(ends_[1], text), text.size()) << "nobody misses it";
}

TEST_F(OutputTest, LinesArriveInOrder) {
  {
    LogQueue log(ends_[1], WordDropped);
    for (int i = 0; i < 100; ++i) log.Add(std::to_string(i) + "\n");
  }
  const std::string text = ReadAll();
  EXPECT_TRUE(text.starts_with("0\n1\n2\n"));
  EXPECT_TRUE(text.ends_with("\n98\n99\n"));
}

TEST_F(OutputTest, AReaderThatStoppedBlocksNobodyAndIsToldWhatItMissed) {
  LogQueue log(ends_[1], WordDropped);
  const std::string line = std::string(1000, 'x') + "\n";
  for (int i = 0; i < 5000; ++i) log.Add(line);
  const std::int64_t dropped = log.dropped();
  EXPECT_GT(dropped, 0);
  EXPECT_LE(dropped, 5000 - 1024);
  // It reads again.
  std::string text;
  std::array<char, 65536> buffer;
  const auto told = [&text] {
    std::int64_t sum = 0;
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);)
      if (each.ends_with("dropped")) sum += std::stoll(each);
    return sum;
  };
  while (told() < dropped) {
    const ssize_t count = read(ends_[0], buffer.data(), buffer.size());
    ASSERT_GT(count, 0);
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  EXPECT_EQ(told(), dropped);
}

TEST_F(OutputTest, EndsWhileTheReaderIsStoppedOrGone) {
  {
    LogQueue log(ends_[1], WordDropped);
    for (int i = 0; i < 5000; ++i) log.Add(std::string(1000, 'x') + "\n");
  }
  CloseReader();
  LogQueue log(ends_[1], WordDropped);
  log.Add("to nobody\n");
}

}  // namespace
}  // namespace dynamix
