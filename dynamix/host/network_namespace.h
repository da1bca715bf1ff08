// A network namespace without a name: a host of an emulated cluster.
//
// It lives as long as this object or a process inside it, so nothing stays behind however its maker
// ends. Needs CAP_SYS_ADMIN; what the kernel refuses is an Error. One thread at a time per object.
#pragma once

#include <functional>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class NetworkNamespace {
 public:
  static Result<NetworkNamespace> Create();  // new, with loopback up

  // Moves the calling thread in. Only setns(2): may be called between fork and exec.
  bool Enter() const noexcept;
  // Runs a shell command inside; an Error tells the command and what it said.
  Status Run(const std::string& command) const;
  void Visit(const std::function<void()>& work) const;  // on a thread that enters it
  // For commands that name another namespace; valid while this object lives.
  std::string path() const;

 private:
  FileDescriptor space_;
};

}  // namespace dynamix
