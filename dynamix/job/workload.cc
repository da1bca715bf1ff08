#include "dynamix/job/workload.h"

#include <array>
#include <filesystem>
#include <limits>

#include "dynamix/core/input_error.h"
#include "dynamix/job/toml_file.h"

namespace dynamix {
namespace {

constexpr std::array<std::string_view, kOptimizerKindCount> kOptimizers = {"sgd", "adam", "adamw"};
constexpr std::array<std::string_view, 2> kEngines = {"quadratic", "miniature"};

// The names of an enumeration that knows them itself.
template <typename Enum, int kCount>
std::array<std::string_view, kCount> NamesOf() {
  std::array<std::string_view, kCount> names;
  for (int i = 0; i < kCount; ++i) names[i] = Name(static_cast<Enum>(i));
  return names;
}

void VisitCost(TomlFields& fields, CostOptions& cost) {
  fields.Number("sample_ms", cost.sample_ms, 1e-9, 1e6);
  fields.Number("gradient_bytes", cost.gradient_bytes, 0, 1e12);
  fields.Number("memory_fixed_bytes", cost.memory_fixed_bytes, 0, 1e13);
  fields.Number("memory_per_sample_bytes", cost.memory_per_sample_bytes, 0, 1e12);
  fields.Number("overlap", cost.overlap, 0, 1);
  fields.Number("ramp_batch", cost.saturation.ramp_batch, 0, 1e6);
  fields.Number("spill_batch", cost.saturation.spill_batch, 1e-3, 1e9);
  fields.Number("spill", cost.saturation.spill, 0, 10);
}

void VisitOptimizer(TomlFields& fields, OptimizerOptions& optimizer) {
  fields.Choice("kind", optimizer.kind, kOptimizers);
  fields.Number("learning_rate", optimizer.learning_rate, 1e-9, 1e3);
  fields.Number("momentum", optimizer.momentum, 0, 0.9999);
  fields.Number("weight_decay", optimizer.weight_decay, 0, 1);
  fields.Number("base_batch", optimizer.base_batch, 1, 1e9);
  fields.Choice("rule", optimizer.rule, NamesOf<LearningRateRule, kLearningRateRuleCount>());
  fields.Choice("schedule", optimizer.schedule, NamesOf<Schedule, kScheduleCount>());
  fields.Choice("clock", optimizer.clock, NamesOf<ScheduleClock, kScheduleClockCount>());
  fields.Number("planned_samples", optimizer.planned_samples, 1, 1e15);
}

// The optimizer is the workload's, the seed is the run's: both are absent here. The task's own seed
// is part of the description: all runs of one workload train the same task.
void VisitMiniature(TomlFields& fields, MiniatureOptions& options) {
  fields.Choice("family", options.family, NamesOf<MiniatureFamily, kMiniatureFamilyCount>());
  fields.Integer("inputs", options.network.inputs, 1, 64);
  fields.Integer("hidden", options.network.hidden, 1, 128);
  fields.Integer("second_hidden", options.network.second_hidden, 0, 128);
  fields.Integer("classes", options.network.classes, 2, 16);
  fields.Choice("activation", options.network.activation, NamesOf<Activation, 2>());
  fields.Integer("training_samples", options.training_samples, 64, 60000);
  fields.Integer("held_out_samples", options.held_out_samples, 16, 10000);
  fields.Number("label_noise", options.label_noise, 0, 0.9);
  fields.Number("spectrum", options.spectrum, 0, 2);
  fields.Number("feature_scale", options.feature_scale, 0.05, 20);
  fields.Number("initial_scale", options.initial_scale, 0.05, 5);
  fields.Integer("teacher_hidden", options.teacher_hidden, 1, 64);
  fields.Number("temperature", options.temperature, 0.01, 10);
  fields.Integer("prototypes", options.prototypes, 1, 16);
  fields.Integer("noise_every", options.noise_every, 1, 100);
  int task_seed = static_cast<int>(options.task_seed);
  fields.Integer("task_seed", task_seed, 0, std::numeric_limits<int>::max());
  options.task_seed = static_cast<std::uint64_t>(task_seed);
}

// The engine's name decides which of its constants are known.
void VisitConvergence(TomlFields& fields, Workload& workload) {
  int engine = static_cast<int>(workload.convergence.index());
  fields.Name("engine", engine, kEngines, TomlFields::Need::kRequired);
  if (engine == 0) {
    if (!workload.is_quadratic()) workload.convergence = QuadraticOptions{};
    VisitFields(fields, std::get<QuadraticOptions>(workload.convergence));
  } else {
    if (workload.is_quadratic()) workload.convergence = MiniatureOptions{};
    VisitMiniature(fields, std::get<MiniatureOptions>(workload.convergence));
  }
}

}  // namespace

void Workload::Validate() const {
  const int targets = (target.accuracy > 0) + (target.loss > 0) + (target.run_share > 0);
  if (targets != 1)
    throw InputError(name + ": target has " + std::to_string(targets) +
                     " values above 0: expected exactly one of accuracy, loss, run_share");
  if (optimizer.weight_decay > 0 && optimizer.kind != OptimizerKind::kAdamW)
    throw InputError::OutOfRange(name + ": optimizer.weight_decay", optimizer.weight_decay,
                                 "0 unless optimizer.kind is adamw");
  if (is_quadratic()) {
    std::get<QuadraticOptions>(convergence).Validate(name + ": convergence");
    return;
  }
  if (scales_with_workers > 0)
    throw InputError::OutOfRange(name + ": scales_with_workers", scales_with_workers,
                                 "0 for a miniature: its noise is real and cannot be scaled");
  MiniatureOptions options = std::get<MiniatureOptions>(convergence);
  options.optimizer = optimizer;
  options.Validate();
}

Workload Workload::OnWorkers(int workers) const {
  if (scales_with_workers == 0) return *this;
  Workload scaled = *this;
  const double factor = static_cast<double>(workers) / scales_with_workers;
  scaled.optimizer.base_batch *= factor;
  scaled.optimizer.planned_samples *= factor;
  std::get<QuadraticOptions>(scaled.convergence).noise_scale *= factor;
  scaled.scales_with_workers = 0;
  return scaled;
}

JobSettings SettingsOf(const Workload& workload) {
  JobSettings settings = SettingsOf(workload.optimizer);
  if (workload.target.accuracy > 0) settings.target_accuracy = workload.target.accuracy;
  if (workload.target.loss > 0) settings.target_loss = workload.target.loss;
  return settings;
}

void VisitFields(TomlFields& fields, Workload& workload) {
  fields.Text("description", workload.description);
  fields.Integer("scales_with_workers", workload.scales_with_workers, 0, 4096);
  fields.Section("cost", [&](TomlFields& inner) { VisitCost(inner, workload.cost); });
  fields.Section("model", [&](TomlFields& inner) {
    inner.Text("name", workload.model.name);
    inner.Number("width", workload.model.width, 1e-3, 8);
    inner.Text("dataset", workload.model.dataset);
  });
  fields.Section("optimizer",
                 [&](TomlFields& inner) { VisitOptimizer(inner, workload.optimizer); });
  fields.Section("convergence", [&](TomlFields& inner) { VisitConvergence(inner, workload); });
  fields.Section("target", [&](TomlFields& inner) {
    inner.Number("accuracy", workload.target.accuracy, 0, 1);
    inner.Number("loss", workload.target.loss, 0, 1e9);
    inner.Number("run_share", workload.target.run_share, 0, 1);
  });
}

Workload ParseWorkload(std::string_view text, const std::string& source) {
  Workload workload;
  workload.name = source;
  ReadToml(text, source, [&](TomlFields& fields) { VisitFields(fields, workload); });
  workload.Validate();
  return workload;
}

Workload LoadWorkload(const std::string& path) {
  Workload workload;
  workload.name = path;  // what Validate names
  ReadTomlFile(path, [&](TomlFields& fields) { VisitFields(fields, workload); });
  workload.Validate();
  workload.name = std::filesystem::path(path).stem().string();
  return workload;
}

std::string FormatWorkload(const Workload& workload) {
  Workload copy = workload;
  return WriteToml([&](TomlFields& fields) { VisitFields(fields, copy); });
}

}  // namespace dynamix
