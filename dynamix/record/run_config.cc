#include "dynamix/record/run_config.h"

#include "dynamix/core/input_error.h"
#include "dynamix/job/toml_file.h"

namespace dynamix {
namespace {

void VisitFields(TomlFields& fields, RunConfig& config) {
  fields.Section("run", [&](TomlFields& run) {
    run.Text("backend", config.backend);
    run.Text("policy", config.policy);
    run.Text("workload", config.job.workload.name);
    run.Text("cluster", config.job.scenario.name);
    run.Integer("workers", config.job.workers, 1, 4096);
    int seed = static_cast<int>(config.job.seed);
    run.Integer("seed", seed, 0, 1 << 30);
    config.job.seed = static_cast<std::uint64_t>(seed);
    run.Integer("window", config.job.window, 1, 100000);
    run.Flag("guard", config.guard);
  });
  fields.Section("workload",
                 [&](TomlFields& inner) { dynamix::VisitFields(inner, config.job.workload); });
  fields.Section("cluster",
                 [&](TomlFields& inner) { dynamix::VisitFields(inner, config.job.scenario); });
}

}  // namespace

std::string FormatRunConfig(const RunConfig& config) {
  RunConfig copy = config;
  return WriteToml([&](TomlFields& fields) { VisitFields(fields, copy); });
}

RunConfig LoadRunConfig(const std::string& path) {
  RunConfig config;
  ReadTomlFile(path, [&](TomlFields& fields) { VisitFields(fields, config); });
  try {
    config.job.workload.Validate();
    config.job.scenario.Validate();
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what());
  }
  return config;
}

}  // namespace dynamix
