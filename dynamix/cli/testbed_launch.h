// Ranks on the emulated cluster of a job: what `dynamix train --backend live --cluster` and `dynamix
// launch --cluster` share.
#pragma once

#include <string>

#include "dynamix/host/launcher.h"
#include "dynamix/job/job_spec.h"

namespace dynamix {

// `testbed`: pacing (network as far as the privileges allow; ranks pace themselves), quota (speed by
// CPU quota) or plain (processes only). Fills address, environment and place of the ranks; says on stderr what is
// emulated unless `quiet`. Returns what Launch does.
int LaunchOnTestbed(const JobSpec& job, const std::string& testbed, bool quiet,
                    LaunchOptions& launch);

}  // namespace dynamix
