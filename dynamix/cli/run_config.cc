#include "dynamix/cli/run_config.h"

#include "dynamix/simulator/toml_file.h"

namespace dynamix {
namespace {

void VisitFields(TomlFields& fields, RunConfig& config) {
  fields.Section("run", [&](TomlFields& run) {
    run.Text("backend", config.backend);
    run.Text("policy", config.policy);
    run.Text("workload", config.workload.name);
    run.Text("cluster", config.scenario.name);
    run.Integer("workers", config.workers, 1, 4096);
    run.Integer("seed", config.seed, 0, 1 << 30);
    run.Integer("window", config.window, 1, 100000);
  });
  fields.Section("workload",
                 [&](TomlFields& inner) { dynamix::VisitFields(inner, config.workload); });
  fields.Section("cluster",
                 [&](TomlFields& inner) { dynamix::VisitFields(inner, config.scenario); });
}

}  // namespace

std::string FormatRunConfig(const RunConfig& config) {
  RunConfig copy = config;
  return WriteToml([&](TomlFields& fields) { VisitFields(fields, copy); });
}

RunConfig LoadRunConfig(const std::string& path) {
  RunConfig config;
  ReadTomlFile(path, [&](TomlFields& fields) { VisitFields(fields, config); });
  config.workload.Validate();
  config.scenario.Validate();
  return config;
}

}  // namespace dynamix
