#include "dynamix/host/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "dynamix/host/text_file.h"

namespace dynamix {

Status DropCapabilities() {
  // Ambient ones would come back with the next exec.
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  const __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return SystemError("capset", errno);
  return Nothing{};
}

}  // namespace dynamix
