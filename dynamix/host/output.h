// Writing to whoever reads, or has stopped reading: a terminal, a pipe, a file.
//
// LogQueue's Add never waits: a thread of its own writes, what does not fit is dropped and counted.
// Thread-safe; never fails. Both ignore a reader that is gone, if SIGPIPE is ignored.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace dynamix {

// Writes a beginning of `text`, as much as `file` takes without waiting, and returns how much that
// was. A reader that is gone takes everything: nobody misses it. Does not change the file's flags,
// which belong to other processes too.
std::size_t WriteWithoutWaiting(int file, std::string_view text);

class LogQueue {
 public:
  // `file` is borrowed: it stays open for as long as the queue. `dropped` words the line that says
  // how many were.
  LogQueue(int file, std::function<std::string(std::int64_t count)> dropped);
  // Writes what waits, as far as that is possible at once.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // With its end of line.
  void Add(std::string line);
  std::int64_t dropped() const;

 private:
  void Run();

  const int file_;
  const std::function<std::string(std::int64_t)> word_dropped_;
  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::string> lines_;
  std::int64_t dropped_ = 0, told_dropped_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace dynamix
