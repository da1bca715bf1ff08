#include "dynamix/simulator/task.h"

#include <algorithm>
#include <sstream>

#include "dynamix/core/input_error.h"
#include "dynamix/simulator/engine.h"

namespace dynamix {
namespace {

constexpr double kLeastBudget = 3;  // reference times to target
constexpr std::uint64_t kOffsetStride = 0x9E3779B97F4A7C15ULL;

std::unique_ptr<SimulatedCluster> MakeCluster(const Task& task, std::uint64_t cluster_seed) {
  JobSpec job = task.job;
  job.seed = cluster_seed;
  return std::make_unique<SimulatedCluster>(
      job, MakeConvergence(job.workload, task.pools, task.job.seed));
}

[[noreturn]] void RefuseTarget(const Workload& workload, std::string_view field, double value,
                               double reached) {
  std::ostringstream allowed;
  allowed << "what the reference run reaches within the planned samples, " << reached;
  throw InputError::OutOfRange(workload.name + ": target." + std::string(field), value,
                               allowed.str());
}

void SetTarget(Task& task) {
  const TargetOptions& target = task.job.workload.target;
  const ReferenceCurve& curve = task.reference;
  if (target.accuracy > 0) {
    const ReferenceCurve::Point* point = curve.FindAccuracy(target.accuracy);
    if (point == nullptr)
      RefuseTarget(task.job.workload, "accuracy", target.accuracy, curve.points().back().accuracy);
    task.limits.target_accuracy = task.limits.named_accuracy = target.accuracy;
    task.reference_seconds = point->seconds;
    return;
  }
  task.limits.target_loss = target.loss > 0 ? target.loss : curve.LossForTarget(target.run_share);
  if (task.limits.target_loss < curve.final_loss())
    RefuseTarget(task.job.workload, "loss", task.limits.target_loss, curve.final_loss());
  task.reference_seconds = curve.TimeTo(task.limits.target_loss);
  if (target.loss > 0) {
    task.limits.named_loss = target.loss;
  } else {
    task.limits.named_accuracy = curve.AccuracyAt(task.limits.target_loss);
  }
}

}  // namespace

std::unique_ptr<SimulatedCluster> Task::MakeEnvironment(std::uint64_t seed_offset) const {
  auto cluster = MakeCluster(*this, job.seed + seed_offset * kOffsetStride);
  cluster->set_limits(limits);
  return cluster;
}

Task MakeTask(const JobSpec& job, const MiniaturePools& pools) {
  job.scenario.Validate();
  job.workload.Validate();
  Task task{.job = job,
            .pools = job.workload.is_quadratic() ? MiniaturePools{} : pools,
            .reference = ReferenceCurve({{0, 1}})};
  task.job.workload = job.workload.OnWorkers(job.workers);
  const auto cluster = MakeCluster(task, job.seed);
  task.reference = RunReference(*cluster);
  SetTarget(task);
  task.limits.seconds =
      std::max(cluster->time_budget_seconds(), kLeastBudget * task.reference_seconds);
  return task;
}

}  // namespace dynamix
