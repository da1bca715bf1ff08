// The job's clock as other processes see it: one number in shared memory. A rank sets it, the
// testbed reads it, so that events happen at the job's times, whatever start-up and evaluation
// take.
//
// Set and seconds are atomic and may be called from any process and thread.
#pragma once

#include <atomic>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class JobClock {
 public:
  static Result<JobClock> Create();                       // stands at 0
  static Result<JobClock> Open(const std::string& path);  // that of another process
  JobClock(JobClock&& other) noexcept;
  JobClock& operator=(JobClock&& other) = delete;
  ~JobClock();

  void Set(double seconds) noexcept { seconds_->store(seconds, std::memory_order_relaxed); }
  double seconds() const noexcept { return seconds_->load(std::memory_order_relaxed); }
  // For Open in other processes, while this one lives.
  std::string path() const;

 private:
  JobClock(FileDescriptor file, std::atomic<double>* seconds);

  FileDescriptor file_;
  std::atomic<double>* seconds_;  // shared memory, one page
};

}  // namespace dynamix
