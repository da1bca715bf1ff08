// Stands for ebpf_source.cc in a build without libbpf (DYNAMIX_WITH_BPF=OFF).
#include "dynamix/monitor/network_source.h"

namespace dynamix {

OpenedSource OpenEbpfSource(const std::string& cgroup, std::string* note) {
  (void)cgroup;
  note->clear();
  return Error{"this build has no eBPF"};
}

}  // namespace dynamix
