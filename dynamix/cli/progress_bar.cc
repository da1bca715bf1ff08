#include "dynamix/cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "dynamix/cli/terminal.h"

namespace dynamix {
namespace {

constexpr auto kTerminalPause = std::chrono::milliseconds(100);
constexpr auto kLogPause = std::chrono::seconds(10);
constexpr int kBarWidth = 24;

}  // namespace

ProgressBar::ProgressBar(std::string label, long total, bool quiet, long done)
    : label_(std::move(label)),
      total_(std::max(1L, total)),
      done_(done),
      begun_(done),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() {
  if (done_ > begun_) Draw(true);
}

void ProgressBar::Advance(long steps, const std::string& note, double share) {
  const std::lock_guard lock(mutex_);
  if (begun_share_ < 0) begun_share_ = begun_ > 0 ? share : 0;
  share_ = std::min(1.0, share);
  done_ += steps;
  if (!note.empty()) note_ = note;
  if (std::chrono::steady_clock::now() - drawn_ >= (terminal_ ? kTerminalPause : kLogPause))
    Draw(false);
}

void ProgressBar::Draw(bool last) {
  if (quiet_) return;
  drawn_ = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(drawn_ - start_).count();
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const int filled = static_cast<int>(std::max(share, share_) * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  const double todo = static_cast<double>(std::max(0L, total_ - done_));
  double left = done_ > begun_ ? elapsed * todo / static_cast<double>(done_ - begun_) : 0;
  if (share_ > begun_share_ && begun_share_ >= 0)
    left = std::min(left, elapsed * (1 - share_) / (share_ - begun_share_));
  char figures[96];
  // A job that misses its target goes on past what was planned.
  std::snprintf(figures, sizeof figures, "%ld%s%ld  %.0f s, %.0f s left  ", done_,
                done_ > total_ ? " of planned " : "/", total_, elapsed, left);
  std::string line = label_ + " [" + bar + "] " + figures + note_;
  // A line that wraps could not be redrawn in place.
  if (const std::size_t width = TerminalWidth(STDERR_FILENO); width > 0 && line.size() >= width)
    line.resize(width - 1);
  std::fprintf(stderr, "%s%s%s", terminal_ ? "\r\033[K" : "", line.c_str(),
               terminal_ && !last ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace dynamix
