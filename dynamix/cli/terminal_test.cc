#include "dynamix/cli/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace dynamix {
namespace {

TEST(TerminalTest, LinesAreBrokenAtBlanks) {
  EXPECT_EQ(Wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrapped("unbreakable a", 4), "unbreakable\na");
  EXPECT_EQ(Wrapped("", 4), "");
}

TEST(TerminalTest, APipeHasNoWidthAndNoColour) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(TerminalWidth(ends[1]), 0u);
  EXPECT_EQ(Coloured("text", Colour::kRed, ends[1]), "text");
  for (const int end : ends) close(end);
}

TEST(TerminalTest, ATerminalIsAskedForItsWidthAndNoColourIsObeyed) {
  int master = -1, terminal = -1;
  winsize size{.ws_row = 24, .ws_col = 61, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&master, &terminal, nullptr, nullptr, &size) != 0) GTEST_SKIP() << "no terminals";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_EQ(TerminalWidth(terminal), 61u);
  EXPECT_EQ(Coloured("text", Colour::kGreen, terminal), "\033[32mtext\033[0m");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(Coloured("text", Colour::kGreen, terminal), "text");
  unsetenv("NO_COLOR");
  close(master);
  close(terminal);
}

}  // namespace
}  // namespace dynamix
