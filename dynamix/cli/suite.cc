#include "dynamix/cli/suite.h"

#include <algorithm>
#include <filesystem>

#include "dynamix/cli/data_folder.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ScenarioFiles(const std::string& path) {
  if (fs::is_regular_file(path)) return {path};
  fs::path folder = path;
  if (!fs::is_directory(folder)) folder = fs::path(DataFolder()) / "scenarios" / path;
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

std::vector<SuiteJob> ListJobs(const SuiteOptions& options) {
  RequireInRange("--seeds", options.seeds, 1, 1000);
  std::vector<SuiteJob> jobs;
  for (const std::string& file : ScenarioFiles(options.path)) {
    const Scenario scenario = LoadScenario(file);
    const auto& workloads = options.workloads.empty() ? scenario.workloads : options.workloads;
    if (workloads.empty())
      throw InputError(file + " names no workloads: name some with --workloads");
    const std::vector<int> workers =
        options.workers.empty() ? std::vector<int>{scenario.workers} : options.workers;
    for (const std::string& name : workloads) {
      const Workload workload = LoadWorkload(FindData("workload", name, "workloads", ".toml"));
      for (int count : workers)
        for (int k = 0; k < options.seeds; ++k)
          jobs.push_back({scenario, workload, count, options.first_seed + k});
    }
  }
  return jobs;
}

MiniaturePools LoadAllPools() {
  MiniaturePools pools;
  pools.fashion = LoadFashionPool(FashionMnistFolder());
  pools.gaussian = MakeGaussianPool(1);
  return pools;
}

MiniaturePools LoadPools(const std::vector<SuiteJob>& jobs) {
  MiniaturePools pools;
  const bool fashion = std::any_of(jobs.begin(), jobs.end(),
                                   [](const SuiteJob& job) { return NeedsFashion(job.workload); });
  if (fashion) pools.fashion = LoadFashionPool(FashionMnistFolder());
  pools.gaussian = MakeGaussianPool(1);
  return pools;
}

}  // namespace dynamix
