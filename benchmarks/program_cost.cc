#include "benchmarks/program_cost.h"

#include <bpf/bpf.h>

#include <cstring>

namespace dynamix::bench {
namespace {

bpf_prog_info InfoOf(int program) {
  bpf_prog_info info{};
  __u32 length = sizeof info;
  if (program >= 0) bpf_obj_get_info_by_fd(program, &info, &length);
  return info;
}

}  // namespace

ProgramClock::ProgramClock(const char* name) : statistics_(bpf_enable_stats(BPF_STATS_RUN_TIME)) {
  __u32 id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    FileDescriptor candidate(bpf_prog_get_fd_by_id(id));
    if (std::strcmp(InfoOf(candidate.get()).name, name) == 0) program_ = std::move(candidate);
  }
  start_ = Read();
}

ProgramCost ProgramClock::Read() const {
  const bpf_prog_info info = InfoOf(program_.get());
  return {info.run_cnt - start_.calls, info.run_time_ns - start_.nanoseconds};
}

}  // namespace dynamix::bench
