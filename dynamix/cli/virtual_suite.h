// The seam between `dynamix evaluate` and libtorch: how jobs of a suite become virtual clusters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dynamix/evaluation/suite_run.h"

namespace dynamix {

// Loads what the jobs need; `data` is the folder of their one data set, empty: where it usually is.
using VirtualSuite =
    std::function<VirtualMaker(const std::vector<JobSpec>& jobs, const std::string& data)>;

// One thread of libtorch per cluster. Throws InputError for data that is missing or damaged.
VirtualMaker MakeVirtualSuite(const std::vector<JobSpec>& jobs, const std::string& data);

}  // namespace dynamix
