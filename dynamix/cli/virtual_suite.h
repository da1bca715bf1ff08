// The seam between `dynamix evaluate` and libtorch: how jobs of a suite become virtual clusters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/evaluation/suite.h"

namespace dynamix {

// A fresh virtual cluster of a job. Thread-safe; the clusters share the data, which they only read.
using VirtualMaker = std::function<std::unique_ptr<SimulatedCluster>(const JobSpec&)>;
// Loads what the jobs need; `data` is the folder of their one data set, empty: where it usually is.
using VirtualSuite =
    std::function<VirtualMaker(const std::vector<JobSpec>& jobs, const std::string& data)>;

// One thread of libtorch per cluster. Throws InputError for data that is missing or damaged.
VirtualMaker MakeVirtualSuite(const std::vector<JobSpec>& jobs, const std::string& data);

}  // namespace dynamix
