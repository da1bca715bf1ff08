#include "dynamix/evaluation/suite.h"

#include <algorithm>
#include <filesystem>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ScenarioFiles(const std::string& path, const std::string& shipped) {
  if (fs::is_regular_file(path)) return {path};
  fs::path folder = path;
  if (!fs::is_directory(folder)) folder = fs::path(shipped) / path;
  if (fs::is_regular_file(folder.string() + ".toml")) return {folder.string() + ".toml"};
  if (!fs::is_directory(folder))
    throw InputError::OutOfRange("--suite", path, "a folder of scenario files, or one file");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw InputError::OutOfRange("--suite", path, "a folder with *.toml files");
  return files;
}

bool NeedsFashion(const Workload& workload) {
  const auto* miniature = std::get_if<MiniatureOptions>(&workload.convergence);
  return miniature != nullptr && miniature->family == MiniatureFamily::kFashion;
}

}  // namespace

std::vector<JobSpec> ListJobs(const SuiteOptions& options, const FindFile& workload_file) {
  RequireInRange("--seeds", options.seeds, 1, 1000);
  std::vector<JobSpec> jobs;
  for (const std::string& file : ScenarioFiles(options.path, options.shipped)) {
    const Scenario scenario = LoadScenario(file);
    const auto& workloads = options.workloads.empty() ? scenario.workloads : options.workloads;
    if (workloads.empty())
      throw InputError(file + " names no workloads: name some with --workloads");
    const std::vector<int> workers =
        options.workers.empty() ? std::vector<int>{scenario.workers} : options.workers;
    for (const std::string& name : workloads) {
      const Workload workload = LoadWorkload(workload_file("workload", name));
      for (int count : workers)
        for (int k = 0; k < options.seeds; ++k)
          jobs.push_back({.scenario = scenario,
                          .workload = workload.OnWorkers(count),
                          .workers = count,
                          .seed = static_cast<std::uint64_t>(options.first_seed + k)});
    }
  }
  return jobs;
}

MiniaturePools LoadAllPools(const std::string& fashion_folder) {
  MiniaturePools pools;
  pools.fashion = LoadFashionPool(fashion_folder);
  pools.gaussian = MakeGaussianPool(1);
  return pools;
}

MiniaturePools LoadPools(const std::vector<JobSpec>& jobs, const std::string& fashion_folder) {
  MiniaturePools pools;
  const bool fashion = std::any_of(jobs.begin(), jobs.end(),
                                   [](const JobSpec& job) { return NeedsFashion(job.workload); });
  if (fashion) pools.fashion = LoadFashionPool(fashion_folder);
  pools.gaussian = MakeGaussianPool(1);
  return pools;
}

}  // namespace dynamix
