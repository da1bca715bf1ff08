#include "dynamix/host/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "dynamix/host/text_file.h"

namespace dynamix {

Result<NetworkNamespace> NetworkNamespace::Create() {
  NetworkNamespace made;
  int error = 0;
  std::thread maker([&] {
    if (unshare(CLONE_NEWNET) == 0)
      made.space_ = FileDescriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    error = errno;
  });
  maker.join();
  if (!made.space_.valid()) return SystemError("making a network namespace", error);
  if (Status up = made.Run("ip link set lo up"); !up) return Error{up.error()};
  return made;
}

bool NetworkNamespace::Enter() const noexcept { return setns(space_.get(), CLONE_NEWNET) == 0; }

Status NetworkNamespace::Run(const std::string& command) const {
  int words[2];
  if (pipe2(words, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  const pid_t child = fork();
  if (child == 0) {
    dup2(words[1], STDERR_FILENO);
    if (!Enter()) _exit(126);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(words[1]);
  const FileDescriptor reading(words[0]);
  if (child < 0) return SystemError("fork", errno);
  std::string said;
  char buffer[512];
  for (ssize_t got; (got = read(reading.get(), buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status == 0) return Nothing{};
  return Error{"`" + command + "` failed: " + said.substr(0, said.find('\n'))};
}

void NetworkNamespace::Visit(const std::function<void()>& work) const {
  std::thread visitor([&] {
    if (Enter()) work();
  });
  visitor.join();
}

std::string NetworkNamespace::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(space_.get());
}

}  // namespace dynamix
