// Whether the tests of the eBPF source can run here. Tests only.
#pragma once

#include <optional>
#include <string>

#include "dynamix/host/testing/test_host.h"
#include "dynamix/monitor/network_source.h"

namespace dynamix::test {

// Why they cannot (they need namespaces as well); nothing when they can.
inline std::optional<std::string> CannotLoadEbpf() {
  if (auto reason = CannotMakeNamespaces()) return reason;
  const Cgroup cgroup = MakeCgroup();
  std::string note;
  auto source = OpenEbpfSource(cgroup.path(), &note);
  if (!source.ok()) return "needs eBPF: " + source.error();
  if (!note.empty()) return "needs all of eBPF: " + note;
  return std::nullopt;
}

}  // namespace dynamix::test
