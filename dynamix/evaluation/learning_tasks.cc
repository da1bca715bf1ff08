#include "dynamix/evaluation/learning_tasks.h"

#include <cmath>
#include <mutex>
#include <optional>

#include "dynamix/arbitrator/parallel.h"

namespace dynamix {
namespace {

// Made on first use, then shared, read-only, by every job that runs the task.
struct LazyTask {
  std::once_flag once;
  std::optional<Task> task;
};

}  // namespace

std::vector<std::string> FittedWorkloads() {
  return {"lenet_fashion", "vgg11_small_cifar10", "resnet18_small_fashion", "transformer_moby"};
}

TaskSource SimulatorTasks(const DistributionOptions& distribution, std::int64_t count,
                          std::uint64_t seed) {
  const auto tasks = std::make_shared<std::vector<LazyTask>>(count);
  return [distribution, seed, tasks](std::int64_t number, std::uint64_t course) {
    LazyTask& lazy = (*tasks)[number];
    std::call_once(lazy.once, [&] {
      Rng rng = Rng(seed).Fork(number);
      lazy.task = RandomTask(rng, distribution);
    });
    const Task& task = *lazy.task;
    // `tasks` keeps the task alive as long as the closure.
    return LearningTask{task.MakeEnvironment(course),
                        [tasks, &task](double loss) {
                          return task.reference.Tau(std::max(loss, task.limits.target_loss));
                        },
                        task.reference_seconds};
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
    Arbitrator arbitrator(policy, {.guard = {.on = false}, .seed = static_cast<std::uint64_t>(i)});
    const JobResult result = RunJob(*environment, arbitrator, 0);
    logs[i] = std::log(result.time_to_target_s / tasks_[i].reference_seconds);
  });
  double all = 0, quadratics = 0;
  int quadratic_count = 0;
  for (int i = 0; i < count; ++i) {
    all += logs[i];
    if (!tasks_[i].job.workload.is_quadratic()) continue;
    quadratics += logs[i];
    ++quadratic_count;
  }
  const auto mean = [](double sum, int n) { return n > 0 ? std::exp(sum / n) : kMissing; };
  return {mean(all, count), mean(quadratics, quadratic_count),
          mean(all - quadratics, count - quadratic_count)};
}

}  // namespace dynamix
