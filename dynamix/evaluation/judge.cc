// Target of a job whose reference run has the curve a(t), from a(0) to its best over T seconds:
//
//   level   the best so far at run_share * T, at most kMostGain of the whole gain
//   time    when the reference first had that level
//   budget  kBudget times that
//
// for accuracies; losses likewise, with the lowest so far. The cap keeps targets off the flat end of
// a curve, where chance decides when they are met.
#include "dynamix/evaluation/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/core/features.h"
#include "dynamix/evaluation/result_cache.h"

namespace dynamix {
namespace {

constexpr double kMostGain = 0.97;
constexpr double kBudget = 4;
constexpr double kLeastAccuracyGain = 0.1;
constexpr double kLeastLossGain = 0.1;       // of the loss at the start
constexpr double kEvaluateEvery = 1.0 / 50;  // of the nominal run
constexpr int kNormGroups = 4;

std::string JobText(const PopulationJob& job) {
  const RunConfig config{.backend = "virtual", .policy = "", .job = job.spec};
  return FormatRunConfig(config) + (job.target_is_loss ? "loss" : "accuracy") +
         (job.target_is_named ? ", named\n" : ", not named\n");
}

RunKey KeyOf(const PopulationJob& job, const std::string& policy, const std::string& label) {
  return {.job = JobText(job),
          .policy = policy,
          .version = RunVersion(),
          .label = job.name() + "-" + label};
}

JobResult RunReference(const PopulationJob& job, SimulatedCluster& cluster,
                       const std::function<void()>& window) {
  JobResult result;
  result.scenario = job.name();
  result.workload = job.spec.workload.name;
  result.policy = kReference;
  result.workers = job.spec.workers;
  result.seed = static_cast<int>(job.spec.seed);
  cluster.Reset();
  const auto record = [&] {
    if (window) window();
    const Truth& truth = cluster.truth();
    result.curve.push_back(
        {truth.seconds, truth.samples, truth.held_out_loss, truth.held_out_accuracy});
    result.windows += 1;
  };
  record();
  while (cluster.truth().progress < 1) {
    cluster.Advance(cluster.BalancedSizes(cluster.base_batch()));
    record();
  }
  result.time_to_target_s = cluster.truth().seconds;
  result.samples = cluster.truth().samples;
  return result;
}

VirtualOptions OptionsOf(const PopulationJob& job) {
  return {.held_out_samples = job.held_out_samples,
          .evaluate_every = kEvaluateEvery,
          .norm_groups = kNormGroups};
}

JobLimits LimitsOf(const PopulationJob& job, const JobTarget& target) {
  return {.target_loss = target.loss,
          .target_accuracy = target.accuracy,
          .seconds = target.budget_s,
          .named_accuracy = job.target_is_named ? target.accuracy : 0,
          .named_loss = job.target_is_named ? target.loss : 0};
}

// A run that is known, or to be made.
struct PlannedRun {
  const PopulationJob* job;
  const PolicySpec* policy;  // null: the reference
  RunKey key;
  std::string name;  // for people
  std::optional<JobResult> result;
};

PlannedRun Plan(const PopulationJob& job, const PolicySpec* policy, const ResultCache& cache,
                const std::set<std::string>& fresh) {
  PlannedRun run{.job = &job, .policy = policy};
  const std::string name = policy != nullptr ? policy->name : kReference;
  // A file is known by what it holds: it may go by several names.
  const std::string checksum = policy != nullptr ? policy->checksum : "";
  std::string prefix;
  if (policy != nullptr && policy->guarded) prefix += kGuardedPrefix;
  if (policy != nullptr && policy->steps) prefix += kStepsPrefix;
  run.key = checksum.empty()
                ? KeyOf(job, name, name)
                : KeyOf(job, prefix + "sha256:" + checksum, prefix + checksum.substr(0, 12));
  run.name = job.name() + " " + name;
  if (!fresh.contains(name)) run.result = cache.Find(run.key);
  if (run.result) run.result->policy = name;
  return run;
}

long Known(const std::vector<PlannedRun>& runs) {
  return std::count_if(runs.begin(), runs.end(),
                       [](const PlannedRun& run) { return run.result.has_value(); });
}

// Makes what is not known, with `make(i)`.
void Complete(std::vector<PlannedRun>& runs, const ResultCache& cache,
              const SuiteRunOptions& options, const std::function<JobResult(int)>& make) {
  std::vector<int> todo;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].result) todo.push_back(static_cast<int>(i));
  ParallelFor(static_cast<int>(todo.size()), options.threads, [&](int k) {
    PlannedRun& run = runs[todo[k]];
    run.result = make(todo[k]);
    cache.Keep(run.key, *run.result);
    if (options.callbacks.finished) options.callbacks.finished(run.name);
  });
}

// Accuracies as they are, losses turned round: more is better.
double Good(const CurvePoint& point, bool by_loss) {
  return by_loss ? -point.loss : point.accuracy;
}

}  // namespace

std::string RunVersion() {
  char text[40];
  std::snprintf(text, sizeof text, "%d-%016llx", kRunVersion,
                static_cast<unsigned long long>(FeatureHash()));
  return text;
}

std::optional<JobTarget> MakeTarget(const PopulationJob& job,
                                    const std::vector<CurvePoint>& reference) {
  const bool by_loss = job.target_is_loss;
  const double first = Good(reference.front(), by_loss);
  double best = first, level = first;
  const double until = job.spec.workload.target.run_share * reference.back().seconds;
  for (const CurvePoint& point : reference) {
    best = std::max(best, Good(point, by_loss));
    if (point.seconds <= until) level = best;
  }
  const double least = by_loss ? kLeastLossGain * reference.front().loss : kLeastAccuracyGain;
  if (!(best - first >= least) || !(level > first)) return std::nullopt;
  level = std::min(level, first + kMostGain * (best - first));
  const auto met = std::find_if(reference.begin(), reference.end(), [&](const CurvePoint& point) {
    return Good(point, by_loss) >= level;
  });
  JobTarget target;
  (by_loss ? target.loss : target.accuracy) = std::abs(level);
  target.reference_s = met->seconds;
  target.reference_samples = met->samples;
  target.budget_s = kBudget * met->seconds;
  return target;
}

Judgement Judge(Population population, const std::vector<PopulationJob>& jobs,
                const std::vector<PolicySpec>& policies, const VirtualMaker& make,
                const JudgeOptions& options) {
  Judgement judgement{.suite = std::string(Name(population)), .version = RunVersion()};
  for (const PolicySpec& policy : policies)
    judgement.policies.push_back({policy.name, policy.checksum});
  const ResultCache cache(options.cache);
  std::vector<PlannedRun> references, runs;
  for (const PopulationJob& job : jobs) {
    references.push_back(Plan(job, nullptr, cache, options.fresh));
    for (const PolicySpec& policy : policies)
      runs.push_back(Plan(job, &policy, cache, options.fresh));
  }
  if (options.runs.callbacks.begun)
    options.runs.callbacks.begun(static_cast<long>(references.size() + runs.size()),
                                 Known(references) + Known(runs));
  Complete(references, cache, options.runs, [&](int i) {
    const PopulationJob& job = *references[i].job;
    return RunReference(job, *make(job.spec, OptionsOf(job)), options.runs.callbacks.window);
  });
  std::map<const PopulationJob*, JobTarget> targets;
  for (const PlannedRun& reference : references) {
    const PopulationJob& job = *reference.job;
    if (const auto target = MakeTarget(job, reference.result->curve)) {
      judgement.jobs.push_back(job);
      judgement.targets.push_back(*target);
      targets[&job] = *target;
    } else {
      judgement.left_out.push_back(job.name());
    }
  }
  if (judgement.jobs.empty())
    throw std::runtime_error("no reference run learned enough to set its job a target");
  std::erase_if(runs, [&](const PlannedRun& run) { return targets.count(run.job) == 0; });
  Complete(runs, cache, options.runs, [&](int i) {
    const PopulationJob& job = *runs[i].job;
    const JobSpec spec = JobUnder(*runs[i].policy, job.spec);
    const auto cluster = make(spec, OptionsOf(job));
    cluster->set_limits(LimitsOf(job, targets.at(&job)));
    return RunPolicy(spec, *runs[i].policy, *cluster, options.runs);
  });
  for (PlannedRun& run : runs) judgement.results.push_back(std::move(*run.result));
  return judgement;
}

std::vector<PopulationJob> Shortened(std::vector<PopulationJob> jobs, double length) {
  for (PopulationJob& job : jobs) job.spec.workload.optimizer.planned_samples *= length;
  return jobs;
}

}  // namespace dynamix
