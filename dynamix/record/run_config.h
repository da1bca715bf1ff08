// A run's effective configuration, as config.toml of its folder holds it: what was asked, and the
// workload and the cluster with every value in force. A plain value.
#pragma once

#include <string>

#include "dynamix/job/job_spec.h"

namespace dynamix {

struct RunConfig {
  std::string backend = "virtual";  // sim, virtual or live
  std::string policy = "static";    // as the user named it
  JobSpec job;
  bool guard = true;  // live: on (arbitrator/guard.h)
};

std::string FormatRunConfig(const RunConfig& config);
// Throws InputError naming file, line, key, value and allowed range.
RunConfig LoadRunConfig(const std::string& path);

}  // namespace dynamix
