// RateLimit: lets so many events a second pass and counts the others, so that a flood of one kind
// cannot fill a log. A value type; the time is an argument. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace dynamix {

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `burst` may pass at once.
  RateLimit(double per_second, double burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  // True when this event may pass.
  bool Pass(Time now) {
    if (last_ != Time{}) {
      const double seconds = std::chrono::duration<double>(now - last_).count();
      left_ = std::min(burst_, left_ + std::max(0.0, seconds) * per_second_);
    }
    last_ = now;
    if (left_ < 1) {
      ++held_;
      return false;
    }
    left_ -= 1;
    return true;
  }
  // How many were held back since this was last asked.
  std::int64_t TakeHeld() { return std::exchange(held_, 0); }

 private:
  double per_second_, burst_, left_;
  Time last_{};  // of the last event
  std::int64_t held_ = 0;
};

}  // namespace dynamix
