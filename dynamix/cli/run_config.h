// A run's effective configuration, as config.toml of its folder holds it: what was asked, and the
// workload and the cluster with every value in force. A plain value.
#pragma once

#include <string>

#include "dynamix/simulator/scenario.h"
#include "dynamix/simulator/workload.h"

namespace dynamix {

struct RunConfig {
  std::string backend = "virtual";  // sim, virtual or live
  std::string policy = "static";    // as the user named it
  Workload workload;                // on this run's workers
  Scenario scenario;
  int workers = 1;
  int seed = 1;
  int window = kWindowIterations;  // iterations
};

std::string FormatRunConfig(const RunConfig& config);
// Throws InputError naming file, line, key, value and allowed range.
RunConfig LoadRunConfig(const std::string& path);

}  // namespace dynamix
