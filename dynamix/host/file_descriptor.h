// Owns a file descriptor: closed with the object. Movable; one thread at a time. And those that this
// process has open, whoever opened them.
#pragma once

#include <unistd.h>

#include <utility>
#include <vector>

namespace dynamix {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }

  // Closes it now; false when the system refuses, which for a written file means data was lost.
  bool Close() { return close(std::exchange(number_, -1)) == 0; }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// Empty when the system does not say. One that is closed meanwhile may be another file by now.
std::vector<int> OpenDescriptors();

}  // namespace dynamix
