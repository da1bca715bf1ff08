// A progress bar on stderr: redrawn in place on a terminal, a line now and then elsewhere.
// Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace dynamix {

class ProgressBar {
 public:
  // `quiet`: draws nothing (--json, --quiet).
  // `done`: of the total, what was done before (a resumed job).
  ProgressBar(std::string label, long total, bool quiet, long done = 0);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `share`: of the way to an end that may come before the total, [0, 1]; the time left is that to
  // the nearer of the two.
  void Advance(long steps = 1, const std::string& note = {}, double share = 0);

 private:
  void Draw(bool last);

  std::mutex mutex_;
  std::string label_, note_;
  long total_, done_, begun_;
  double share_ = 0, begun_share_ = -1;  // of the other end; -1: not told yet
  bool quiet_, terminal_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace dynamix
