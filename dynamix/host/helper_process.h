// A forked process that does one thing beside its maker until either ends: killed and waited for
// with this object, and by the kernel when the maker's thread dies. Deaf to the terminal's ctrl-C.
#pragma once

#include <functional>

namespace dynamix {

class HelperProcess {
 public:
  // `work` runs in the child and sees what the maker had; when it returns, the child ends.
  explicit HelperProcess(const std::function<void()>& work);
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  ~HelperProcess();

 private:
  int pid_ = -1;
};

}  // namespace dynamix
