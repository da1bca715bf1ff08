#include "dynamix/host/helper_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dynamix {

HelperProcess::HelperProcess(const std::function<void()>& work) {
  const pid_t maker = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != maker) _exit(0);  // it died in between
  setpgid(0, 0);
  work();
  _exit(0);
}

HelperProcess::~HelperProcess() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace dynamix
