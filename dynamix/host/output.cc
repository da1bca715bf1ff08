#include "dynamix/host/output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace dynamix {
namespace {

constexpr std::size_t kMostLines = 1024;
// How long a line waits for a reader that has stopped, before it is asked whether to go on.
constexpr int kLookMs = 50;

bool TakesMore(int file, int patience_ms) {
  pollfd poll_file{file, POLLOUT, 0};
  return poll(&poll_file, 1, patience_ms) > 0;
}

}  // namespace

std::size_t WriteWithoutWaiting(int file, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size() && TakesMore(file, 0)) {
    // A pipe that is ready takes so much at once.
    const std::size_t piece = std::min<std::size_t>(text.size() - done, PIPE_BUF);
    const ssize_t count = write(file, text.data() + done, piece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return text.size();
    done += static_cast<std::size_t>(count);
  }
  return done;
}

LogQueue::LogQueue(int file, std::function<std::string(std::int64_t)> dropped)
    : file_(file), word_dropped_(std::move(dropped)), thread_([this] { Run(); }) {}

LogQueue::~LogQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_all();
  thread_.join();
}

void LogQueue::Add(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMostLines) {
      ++dropped_;
      return;
    }
    lines_.push_back(std::move(line));
  }
  wakes_.notify_one();
}

std::int64_t LogQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void LogQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wakes_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    std::string text = std::move(lines_.front());
    lines_.pop_front();
    if (const std::int64_t count = std::exchange(told_dropped_, dropped_); count < dropped_)
      text += word_dropped_(dropped_ - count);
    for (std::size_t done = 0; done < text.size();) {
      lock.unlock();
      const std::size_t written = WriteWithoutWaiting(file_, std::string_view(text).substr(done));
      const bool stuck = written == 0 && !TakesMore(file_, kLookMs);
      lock.lock();
      done += written;
      if (stuck && stopping_) return;
    }
  }
}

}  // namespace dynamix
