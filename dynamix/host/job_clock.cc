#include "dynamix/host/job_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "dynamix/host/text_file.h"

namespace dynamix {
namespace {

static_assert(std::atomic<double>::is_always_lock_free);

constexpr std::size_t kBytes = sizeof(std::atomic<double>);

Result<std::atomic<double>*> Map(const FileDescriptor& file) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return SystemError("mapping the job's clock", errno);
  return static_cast<std::atomic<double>*>(memory);
}

}  // namespace

JobClock::JobClock(FileDescriptor file, std::atomic<double>* seconds)
    : file_(std::move(file)), seconds_(seconds) {}
JobClock::JobClock(JobClock&& other) noexcept
    : file_(std::move(other.file_)), seconds_(std::exchange(other.seconds_, nullptr)) {}
JobClock::~JobClock() {
  if (seconds_ != nullptr) munmap(seconds_, kBytes);
}

Result<JobClock> JobClock::Create() {
  FileDescriptor file(memfd_create("dynamix-job-clock", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), kBytes) != 0)
    return SystemError("making the job's clock", errno);
  const Result<std::atomic<double>*> memory = Map(file);
  if (!memory) return Error{memory.error()};
  return JobClock(std::move(file), memory.value());
}

Result<JobClock> JobClock::Open(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0)
    return SystemError("opening the job's clock " + path, errno);
  if (about.st_size != static_cast<off_t>(kBytes)) return Error{path + " is not a job's clock"};
  const Result<std::atomic<double>*> memory = Map(file);
  if (!memory) return Error{memory.error()};
  return JobClock(std::move(file), memory.value());
}

std::string JobClock::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get());
}

}  // namespace dynamix
