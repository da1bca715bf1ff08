#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/rpc/advised_worker.h"
#include "dynamix/rpc/dynamix.h"

struct dynamix_worker {
  dynamix::AdvisedWorker worker;
};

namespace {

// The caller may have been compiled with fewer fields: those it lacks keep their defaults.
template <typename T>
T Complete(const T* given, void (*init)(T*)) {
  T whole;
  init(&whole);
  if (given == nullptr) return whole;
  const std::size_t known = std::min(given->struct_size, sizeof(T));
  std::memcpy(&whole, given, known);
  whole.struct_size = sizeof(T);
  return whole;
}

static_assert(sizeof(dynamix_iteration) ==
                  sizeof(std::size_t) + dynamix::kIterationFields * sizeof(double),
              "dynamix_iteration has the fields of an iteration and no others");

std::string Text(const char* text) { return text == nullptr ? "" : text; }

dynamix::AdvisedWorkerOptions Translate(const dynamix_options& from) {
  dynamix::AdvisedWorkerOptions to;
  to.advisor.addresses = Text(from.addresses);
  to.advisor.job = Text(from.job);
  to.advisor.rank = from.rank;
  to.advisor.size = from.size;
  to.advisor.run = from.run;
  to.advisor.timeout_s = to.advisor.patience_s = from.timeout_s;
  dynamix::RequireInRange("learning_rate_rule", from.learning_rate_rule, 0,
                          dynamix::kLearningRateRuleCount - 1);
  dynamix::RequireInRange("schedule", from.schedule, 0, dynamix::kScheduleCount - 1);
  dynamix::RequireInRange("clock", from.clock, 0, dynamix::kScheduleClockCount - 1);
  dynamix::RequireInRange("adaptive", from.adaptive, 0, 1);
  to.advisor.settings.rule = static_cast<dynamix::LearningRateRule>(from.learning_rate_rule);
  to.advisor.settings.schedule = static_cast<dynamix::Schedule>(from.schedule);
  to.advisor.settings.clock = static_cast<dynamix::ScheduleClock>(from.clock);
  to.advisor.settings.adaptive = from.adaptive == 1;
  to.advisor.settings.base_learning_rate = from.base_learning_rate;
  to.advisor.settings.base_batch = from.base_batch;
  to.advisor.settings.target_accuracy = from.target_accuracy;
  to.advisor.settings.target_loss = from.target_loss;
  to.advisor.token = Text(from.token);
  to.advisor.tls = {Text(from.tls_authority), Text(from.tls_certificate), Text(from.tls_key)};
  to.advisor.tls_name = Text(from.tls_name);
  to.bounds = {.min = from.min_batch, .max = from.max_batch, .granularity = from.granularity};
  to.start_batch = from.start_batch;
  to.window_iterations = from.window_iterations;
  dynamix::RequireInRange("monitor", from.monitor, 0, 1);
  dynamix::RequireInRange("device", from.device, -1, 4095);
  dynamix::MonitorOptions monitor;
  monitor.device = from.device;
  if (from.monitor == 1) to.measure = dynamix::MakeMeasure(std::move(monitor));
  return to;
}

}  // namespace

extern "C" {

void dynamix_options_init(dynamix_options* options) {
  *options = {};
  options->struct_size = sizeof *options;
  options->job = "job";
  options->size = 1;
  options->start_batch = 32;
  options->min_batch = 8;
  options->max_batch = 1024;
  options->granularity = 1;
  options->window_iterations = dynamix::kWindowIterations;
  options->timeout_s = 3;
  options->monitor = 1;
  options->device = -1;
  for (double* unknown : {&options->base_learning_rate, &options->base_batch,
                          &options->target_accuracy, &options->target_loss})
    *unknown = dynamix::kMissing;
}

void dynamix_iteration_init(dynamix_iteration* iteration) {
  iteration->struct_size = sizeof *iteration;
  dynamix::VisitIteration([](const char*, double& value) { value = dynamix::kMissing; },
                          *iteration);
}

dynamix_worker* dynamix_worker_start(const dynamix_options* options, char* error,
                                     size_t error_size) {
  std::string problem;
  try {
    const dynamix_options whole = Complete(options, dynamix_options_init);
    return new dynamix_worker{dynamix::AdvisedWorker(Translate(whole))};
  } catch (const std::exception& thrown) {
    problem = thrown.what();
  }
  if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", problem.c_str());
  return nullptr;
}

int dynamix_worker_batch(const dynamix_worker* worker) { return worker->worker.batch(); }

int dynamix_worker_end_iteration(dynamix_worker* worker, const dynamix_iteration* iteration) {
  const dynamix_iteration whole = Complete(iteration, dynamix_iteration_init);
  try {
    dynamix::IterationStats stats;
    dynamix::VisitIteration([](const char*, double& to, double from) { to = from; }, stats, whole);
    return worker->worker.EndIteration(stats);
  } catch (const std::exception&) {
    return worker->worker.batch();  // a bug of ours must not stop their training
  }
}

void dynamix_worker_get_counts(const dynamix_worker* worker, dynamix_counts* counts) {
  const dynamix::RemoteAdvisorCounts now = worker->worker.counts();
  dynamix_counts whole{sizeof whole, now.submitted,    now.advised,
                       now.failed,   now.breaker_open, now.fallback};
  const std::size_t size = std::min(counts->struct_size, sizeof whole);
  whole.struct_size = size;
  std::memcpy(counts, &whole, size);
}

void dynamix_worker_stop(dynamix_worker* worker) { delete worker; }

int dynamix_abi_version(void) { return DYNAMIX_ABI_VERSION; }

}  // extern "C"
