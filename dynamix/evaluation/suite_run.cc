#include "dynamix/evaluation/suite_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/simulator/clairvoyant.h"

namespace dynamix {
namespace {

JobResult Named(JobResult result, const JobSpec& job, const std::string& policy) {
  result.scenario = job.scenario.name;
  result.workload = job.workload.name;
  result.workers = job.workers;
  result.seed = static_cast<int>(job.seed);
  result.policy = policy;
  return result;
}

std::vector<PolicySpec> SpecsOf(const std::set<int>& sizes, const SuiteRunOptions& options) {
  std::vector<PolicySpec> specs;
  for (const int size : sizes)
    specs.push_back(options.find_policy("static:" + std::to_string(size)));
  return specs;
}

// Powers of two around the start batch, inside the bounds: what a user would try by hand.
std::set<int> StaticSizes(const Task& task) {
  const Round first = task.MakeEnvironment()->Reset();
  const RoundEntry& entry = first.entries.front();
  std::set<int> sizes;
  for (int exponent = -3; exponent <= 3; ++exponent)
    sizes.insert(
        ClampBatch(std::ldexp(entry.start_batch, exponent), entry.start_batch, entry.bounds));
  sizes.erase(entry.start_batch);  // that one is `static`
  return sizes;
}

// Powers of two a user would try by hand on real training.
std::set<int> CommonSizes(const JobSpec& job) {
  std::set<int> sizes;
  for (int size = 16; size <= 256; size *= 2) sizes.insert(size);
  sizes.erase(job.scenario.start_batch);  // that one is `static`
  return sizes;
}

// Where a run of the suite is recorded; empty: nowhere.
std::string FolderOf(const std::string& record, const JobSpec& job, const std::string& policy) {
  if (record.empty()) return {};
  std::string name = job.scenario.name + "-" + job.workload.name + "-" +
                     std::to_string(job.workers) + "-" + std::to_string(job.seed) + "-" + policy;
  std::replace(name.begin(), name.end(), '/', '_');
  return (std::filesystem::path(record) / name).string();
}

JobResult BoundResult(const Bound& bound) {
  JobResult result;
  result.time_to_target_s = bound.time_to_target_s;
  result.reached = bound.reached;
  result.final_accuracy = bound.final_accuracy;
  return result;
}

std::vector<JobResult> RunSuiteJob(const JobSpec& job, const std::vector<PolicySpec>& policies,
                                   const MiniaturePools& pools, const SuiteRunOptions& options,
                                   std::vector<RunRecord>* shown) {
  const Task task = MakeTask(job, pools);
  std::vector<PolicySpec> all = policies;
  if (options.all_static)
    for (PolicySpec& spec : SpecsOf(StaticSizes(task), options)) all.push_back(std::move(spec));
  std::vector<JobResult> results;
  for (const PolicySpec& spec : all) {
    const bool show = shown != nullptr && shown->size() < policies.size();
    Task own = task;
    own.job = JobUnder(spec, task.job);
    results.push_back(RunPolicy(JobUnder(spec, job), spec, *own.MakeEnvironment(), options,
                                task.reference_seconds, &task.reference,
                                show ? &shown->emplace_back() : nullptr));
  }
  if (options.bounds) {
    results.push_back(Named(BoundResult(BestConstantBatch(task)), job, "best_constant"));
    if (task.job.workload.is_quadratic())
      results.push_back(Named(BoundResult(Clairvoyant(task)), job, "clairvoyant"));
  }
  return results;
}

}  // namespace

JobSpec JobUnder(const PolicySpec& policy, JobSpec job) {
  if (policy.steps) job.workload.optimizer.clock = ScheduleClock::kSteps;
  return job;
}

JobResult RunPolicy(const JobSpec& job, const PolicySpec& spec, SimulatedCluster& environment,
                    const SuiteRunOptions& options, double equal_time_s,
                    const ReferenceCurve* reference, RunRecord* trace) {
  Arbitrator arbitrator(spec, {.guard = {.on = spec.guarded}, .seed = job.seed});
  const RunConfig config{.backend = options.backend, .policy = spec.name, .job = job};
  RunFolder folder(FolderOf(options.record, job, spec.name), FormatRunConfig(config));
  const bool recorded = trace != nullptr || !options.record.empty();
  const auto on_window = [&](const Round& round, const Decision& decision, const Truth& truth) {
    if (options.callbacks.window) options.callbacks.window();
    if (!recorded) return;
    const nlohmann::json line = RoundJson(round, decision, truth);
    folder.AddRound(line);
    if (trace != nullptr) trace->rounds.push_back(ParseRound(line));
  };
  JobResult result = RunJob(environment, arbitrator, equal_time_s, on_window, reference);
  if (equal_time_s <= 0) {  // nothing to compare policies at: then the end
    result.final_accuracy = environment.truth().held_out_accuracy;
    result.final_loss = environment.truth().held_out_loss;
  }
  folder.Finish(SummaryJson(config, result, environment.truth().seconds));
  result.record_loss = folder.Loss();
  if (trace != nullptr) {
    trace->config = config;
    trace->reached = result.reached;
    trace->time_to_target_s = result.time_to_target_s;
  }
  return Named(std::move(result), job, spec.name);
}

std::vector<JobResult> RunSimulatedSuite(const std::vector<JobSpec>& jobs,
                                         const std::vector<PolicySpec>& policies,
                                         const MiniaturePools& pools,
                                         const SuiteRunOptions& options,
                                         std::vector<RunRecord>* shown) {
  if (options.callbacks.begun) options.callbacks.begun(static_cast<long>(jobs.size()), 0);
  std::vector<std::vector<JobResult>> parts(jobs.size());
  ParallelFor(static_cast<int>(jobs.size()), options.threads, [&](int i) {
    parts[i] = RunSuiteJob(jobs[i], policies, pools, options, i == 0 ? shown : nullptr);
    if (options.callbacks.finished) options.callbacks.finished(jobs[i].scenario.name);
  });
  std::vector<JobResult> results;
  for (auto& part : parts) results.insert(results.end(), part.begin(), part.end());
  if (options.all_static) AddBestStatic(results);
  return results;
}

// A run takes seconds to minutes, so runs, not jobs, are what threads take.
std::vector<JobResult> RunVirtualSuite(const std::vector<JobSpec>& jobs,
                                       const std::vector<PolicySpec>& policies,
                                       const VirtualMaker& make, const SuiteRunOptions& options,
                                       std::vector<RunRecord>* shown) {
  std::vector<std::pair<const JobSpec*, PolicySpec>> runs;
  for (const JobSpec& job : jobs) {
    for (const PolicySpec& spec : policies) runs.emplace_back(&job, spec);
    if (!options.all_static) continue;
    for (PolicySpec& spec : SpecsOf(CommonSizes(job), options))
      runs.emplace_back(&job, std::move(spec));
  }
  if (options.callbacks.begun) options.callbacks.begun(static_cast<long>(runs.size()), 0);
  std::vector<JobResult> results(runs.size());
  if (shown != nullptr) shown->resize(policies.size());
  ParallelFor(static_cast<int>(runs.size()), options.threads, [&](int i) {
    const auto& [job, spec] = runs[i];
    const bool show = shown != nullptr && i < static_cast<int>(shown->size());
    const JobSpec own = JobUnder(spec, *job);
    results[i] =
        RunPolicy(own, spec, *make(own, {}), options, 0, nullptr, show ? &(*shown)[i] : nullptr);
    if (options.callbacks.finished)
      options.callbacks.finished(job->workload.name + " x" + std::to_string(job->workers) + " " +
                                 spec.name);
  });
  if (options.all_static) AddBestStatic(results);
  return results;
}

void RequireWholeRecords(const std::vector<JobResult>& results) {
  int damaged = 0;
  std::string first;
  for (const JobResult& result : results) {
    if (result.record_loss.empty()) continue;
    if (damaged++ == 0) first = result.record_loss;
  }
  if (damaged > 0)
    throw RecordLost(std::to_string(damaged) + " runs are not wholly recorded; " + first);
}

}  // namespace dynamix
