// The shipped scenarios and workloads: all load, and every scenario runs with the workloads it
// names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dynamix/simulator/task.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = DYNAMIX_SOURCE_DIR;

std::vector<fs::path> FilesIn(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  return files;
}

Workload LoadNamed(const std::string& name) {
  return LoadWorkload((kRoot / "workloads" / (name + ".toml")).string());
}

TEST(DataFilesTest, EveryWorkloadLoads) {
  EXPECT_GE(FilesIn("workloads").size(), 15u);
  for (const fs::path& file : FilesIn("workloads")) {
    const Workload workload = LoadWorkload(file.string());
    EXPECT_EQ(workload.name, file.stem().string());
    EXPECT_FALSE(workload.description.empty()) << file;
  }
}

TEST(DataFilesTest, GradientBytesAreFourPerParameter) {
  EXPECT_EQ(LoadNamed("vgg11_cifar10").cost.gradient_bytes, 4 * 9231114.0);
  EXPECT_EQ(LoadNamed("vgg16_cifar10").cost.gradient_bytes, 4 * 14728266.0);
  EXPECT_EQ(LoadNamed("vgg19_cifar10").cost.gradient_bytes, 4 * 20040522.0);
  EXPECT_EQ(LoadNamed("resnet34_cifar10").cost.gradient_bytes, 4 * 21282122.0);
  EXPECT_EQ(LoadNamed("resnet50_cifar10").cost.gradient_bytes, 4 * 23520842.0);
}

TEST(DataFilesTest, EveryScenarioLoadsAtManySizes) {
  EXPECT_GE(FilesIn("scenarios").size(), 25u);
  for (const fs::path& file : FilesIn("scenarios")) {
    const Scenario scenario = LoadScenario(file.string());
    EXPECT_FALSE(scenario.workloads.empty()) << file;
    for (const std::string& name : scenario.workloads) LoadNamed(name);
    for (const int workers : {2, 3, 8, 32, 128, 1024})
      EXPECT_EQ(static_cast<int>(ResolveNodes(scenario, workers).size()), workers);
  }
}

TEST(DataFilesTest, ScenariosRunWithTheQuadraticsTheyName) {
  for (const fs::path& file : FilesIn("scenarios")) {
    const Scenario scenario = LoadScenario(file.string());
    for (const std::string& name : scenario.workloads) {
      const Workload workload = LoadNamed(name);
      if (!workload.is_quadratic()) continue;
      for (const int workers : {2, 32}) {
        const Task task =
            MakeTask({.scenario = scenario, .workload = workload, .workers = workers}, {});
        EXPECT_GT(task.reference_seconds, 0) << file << " " << name;
      }
    }
  }
}

TEST(DataFilesTest, HeldOutWorkloadsAreNamedByHeldOutScenariosOnly) {
  for (const fs::path& file : FilesIn("scenarios")) {
    const bool held_out = file.parent_path().filename() == "held_out";
    for (const std::string& name : LoadScenario(file.string()).workloads)
      EXPECT_EQ(name.starts_with("held_out/"), held_out) << file << " names " << name;
  }
}

// Every key of `text` must head a row of a table in docs/scenarios.md.
void ExpectDocumented(const std::string& text, const std::string& document) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(" = ");
    if (end == std::string::npos) continue;
    EXPECT_NE(document.find("| `" + line.substr(0, end) + "` |"), std::string::npos) << line;
  }
}

TEST(DataFilesTest, EveryKeyIsDocumented) {
  std::ifstream file(kRoot / "docs" / "scenarios.md");
  std::ostringstream document;
  document << file.rdbuf();
  Scenario scenario;
  scenario.events.resize(1);
  ExpectDocumented(FormatScenario(scenario), document.str());
  Workload workload;
  ExpectDocumented(FormatWorkload(workload), document.str());
  workload.convergence = MiniatureOptions{};
  ExpectDocumented(FormatWorkload(workload), document.str());
}

}  // namespace
}  // namespace dynamix
