#include "dynamix/cli/learn_tasks.h"

#include <cmath>
#include <mutex>
#include <optional>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/simulator/clairvoyant.h"

namespace dynamix {
namespace {

// Made on first use, then shared, read-only, by every job that runs the task.
struct LazyTask {
  std::once_flag once;
  std::optional<Task> task;
  double hindsight_batch = 0;
};

double MeanBatch(const Bound& bound) {
  double sum = 0;
  for (double batch : bound.global_batches) sum += batch;
  return bound.global_batches.empty() ? 0 : sum / static_cast<double>(bound.global_batches.size());
}

}  // namespace

TaskSource SimulatorTasks(const DistributionOptions& distribution, std::int64_t count,
                          std::uint64_t seed, bool hindsight) {
  const auto tasks = std::make_shared<std::vector<LazyTask>>(count);
  return [distribution, seed, hindsight, tasks](std::int64_t number, std::uint64_t course) {
    LazyTask& lazy = (*tasks)[number];
    std::call_once(lazy.once, [&] {
      Rng rng = Rng(seed).Fork(number);
      lazy.task = RandomTask(rng, distribution);
      // Milliseconds on a quadratic, seconds on a miniature, which does without.
      if (hindsight && lazy.task->workload.is_quadratic())
        lazy.hindsight_batch = MeanBatch(BestConstantBatch(*lazy.task));
    });
    const Task& task = *lazy.task;
    // `tasks` keeps the task alive as long as the closure.
    return LearningTask{task.MakeEnvironment(course),
                        [tasks, &task](double loss) {
                          return task.reference.Tau(std::max(loss, task.limits.target_loss));
                        },
                        task.reference_seconds, lazy.hindsight_batch};
  };
}

Validation::Validation(const DistributionOptions& distribution, int tasks, std::uint64_t seed,
                       int threads)
    : threads_(threads) {
  DistributionOptions options = distribution;
  options.kind = DistributionKind::kValidation;
  std::vector<std::optional<Task>> made(tasks);
  ParallelFor(tasks, threads, [&](int i) {
    Rng rng = Rng(seed).Fork(1000000 + i);
    made[i] = RandomTask(rng, options);
  });
  for (auto& task : made) tasks_.push_back(std::move(*task));
}

Validation::Score Validation::Run(const PolicySpec& policy) const {
  const int count = static_cast<int>(tasks_.size());
  std::vector<double> logs(count);
  ParallelFor(count, threads_, [&](int i) {
    const auto environment = tasks_[i].MakeEnvironment();
    const auto own = policy.make();
    Arbitrator arbitrator(*own, policy.actions, Rng(i));
    const JobResult result = RunJob(*environment, arbitrator, 0);
    logs[i] = std::log(result.time_to_target_s / tasks_[i].reference_seconds);
  });
  double all = 0, quadratics = 0;
  int quadratic_count = 0;
  for (int i = 0; i < count; ++i) {
    all += logs[i];
    if (!tasks_[i].workload.is_quadratic()) continue;
    quadratics += logs[i];
    ++quadratic_count;
  }
  const auto mean = [](double sum, int n) { return n > 0 ? std::exp(sum / n) : kMissing; };
  return {mean(all, count), mean(quadratics, quadratic_count),
          mean(all - quadratics, count - quadratic_count)};
}

}  // namespace dynamix
