// dynamix evaluate: policies x scenario suite, as ratios of times to target with confidence
// intervals.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/evaluation.h"
#include "dynamix/evaluation/evaluation_tables.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/page/page.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/record/run_record.h"
#include "dynamix/simulator/clairvoyant.h"

namespace dynamix {
namespace {

struct EvaluateFlags {
  SuiteOptions suite{.path = "held_out"};
  std::string policies = "static,balanced,base,noise_scale,goodput,composite,default";
  bool all_static = true;
  bool bounds = true;
  bool json = false;
  int threads = 2;
  std::string backend = "sim";
  std::string data;  // empty: where the data set usually is
  std::string report;
  std::string record;
};

JobResult Named(JobResult result, const JobSpec& job, const std::string& policy) {
  result.scenario = job.scenario.name;
  result.workload = job.workload.name;
  result.workers = job.workers;
  result.seed = static_cast<int>(job.seed);
  result.policy = policy;
  return result;
}

// Powers of two around the start batch, inside the bounds: what a user would try by hand.
std::vector<PolicySpec> StaticSizes(const Task& task) {
  const Round first = task.MakeEnvironment()->Reset();
  const RoundEntry& entry = first.entries.front();
  std::set<int> sizes;
  for (int exponent = -3; exponent <= 3; ++exponent)
    sizes.insert(
        ClampBatch(std::ldexp(entry.start_batch, exponent), entry.start_batch, entry.bounds));
  sizes.erase(entry.start_batch);  // that one is `static`
  std::vector<PolicySpec> specs;
  for (int size : sizes) specs.push_back(FindPolicy("static:" + std::to_string(size)));
  return specs;
}

// Powers of two a user would try by hand on real training.
std::vector<PolicySpec> CommonSizes(const JobSpec& job) {
  std::vector<PolicySpec> specs;
  for (int size = 16; size <= 256; size *= 2)
    if (size != job.scenario.start_batch)  // that one is `static`
      specs.push_back(FindPolicy("static:" + std::to_string(size)));
  return specs;
}

// Where a run of the suite is recorded; empty: nowhere.
std::string FolderOf(const EvaluateFlags& flags, const JobSpec& job, const std::string& policy) {
  if (flags.record.empty()) return {};
  std::string name = job.scenario.name + "-" + job.workload.name + "-" +
                     std::to_string(job.workers) + "-" + std::to_string(job.seed) + "-" + policy;
  std::replace(name.begin(), name.end(), '/', '_');
  return (std::filesystem::path(flags.record) / name).string();
}

// One policy on one job, recorded if asked.
JobResult RunPolicy(const JobSpec& job, const PolicySpec& spec, const EvaluateFlags& flags,
                    SimulatedCluster& environment, const Task* task, RunRecord* trace) {
  Arbitrator arbitrator(spec, {.seed = job.seed});
  const RunConfig config{.backend = flags.backend, .policy = spec.name, .job = job};
  RunFolder folder(FolderOf(flags, job, spec.name), FormatRunConfig(config));
  const bool recorded = trace != nullptr || !flags.record.empty();
  const auto on_window = [&](const Round& round, const Decision& decision, const Truth& truth) {
    if (!recorded) return;
    const nlohmann::json line = RoundJson(round, decision, truth);
    folder.AddRound(line);
    if (trace != nullptr) trace->rounds.push_back(ParseRound(line));
  };
  JobResult result = RunJob(environment, arbitrator, task != nullptr ? task->reference_seconds : 0,
                            on_window, task != nullptr ? &task->reference : nullptr);
  if (task == nullptr) {  // nothing to compare accuracies at
    result.final_accuracy = environment.truth().held_out_accuracy;
    // The planned samples may be used up long before the budget.
    if (!result.reached)
      result.time_to_target_s =
          std::max(result.time_to_target_s, environment.time_budget_seconds());
  }
  folder.Finish(SummaryJson(config, result, environment.truth().seconds));
  result.record_loss = folder.Loss();
  if (trace != nullptr) {
    trace->config = config;
    trace->reached = result.reached;
    trace->time_to_target_s = result.time_to_target_s;
  }
  return Named(result, job, spec.name);
}

JobResult BoundResult(const Bound& bound) {
  JobResult result;
  result.time_to_target_s = bound.time_to_target_s;
  result.reached = bound.reached;
  result.final_accuracy = bound.final_accuracy;
  return result;
}

std::vector<JobResult> RunSuiteJob(const JobSpec& job, const std::vector<PolicySpec>& policies,
                                   const EvaluateFlags& flags, const MiniaturePools& pools,
                                   std::vector<RunRecord>* shown) {
  const Task task = MakeTask(job, pools);
  std::vector<PolicySpec> all = policies;
  if (flags.all_static) {
    for (PolicySpec& spec : StaticSizes(task)) all.push_back(std::move(spec));
  }
  std::vector<JobResult> results;
  for (const PolicySpec& spec : all) {
    const bool show = shown != nullptr && shown->size() < policies.size();
    results.push_back(RunPolicy(job, spec, flags, *task.MakeEnvironment(), &task,
                                show ? &shown->emplace_back() : nullptr));
  }
  if (flags.bounds) {
    results.push_back(Named(BoundResult(BestConstantBatch(task)), job, "best_constant"));
    if (task.job.workload.is_quadratic())
      results.push_back(Named(BoundResult(Clairvoyant(task)), job, "clairvoyant"));
  }
  return results;
}

// `shown`: the runs of the first job under the policies the user named, for the report.
std::vector<JobResult> RunSuite(const std::vector<JobSpec>& jobs, const EvaluateFlags& flags,
                                std::vector<RunRecord>* shown) {
  const std::vector<PolicySpec> policies = FindPolicies(flags.policies);
  const MiniaturePools pools = LoadPools(jobs, FashionMnistFolder());
  ProgressBar bar("evaluate", static_cast<long>(jobs.size()), flags.json);
  std::vector<std::vector<JobResult>> parts(jobs.size());
  ParallelFor(static_cast<int>(jobs.size()), flags.threads, [&](int i) {
    parts[i] = RunSuiteJob(jobs[i], policies, flags, pools, i == 0 ? shown : nullptr);
    bar.Advance(1, jobs[i].scenario.name);
  });
  std::vector<JobResult> results;
  for (auto& part : parts) results.insert(results.end(), part.begin(), part.end());
  if (flags.all_static) AddBestStatic(results);
  return results;
}

// Real SGD: a run takes seconds to minutes, so runs, not jobs, are what threads take.
std::vector<JobResult> RunVirtualSuite(const std::vector<JobSpec>& jobs, const EvaluateFlags& flags,
                                       const VirtualSuite& suite, std::vector<RunRecord>* shown) {
  const std::vector<PolicySpec> policies = FindPolicies(flags.policies);
  const VirtualMaker make = suite(jobs, flags.data);
  std::vector<std::pair<const JobSpec*, PolicySpec>> runs;
  for (const JobSpec& job : jobs) {
    for (const PolicySpec& spec : policies) runs.emplace_back(&job, spec);
    if (!flags.all_static) continue;
    for (PolicySpec& spec : CommonSizes(job)) runs.emplace_back(&job, std::move(spec));
  }
  ProgressBar bar("evaluate", static_cast<long>(runs.size()), flags.json);
  std::vector<JobResult> results(runs.size());
  if (shown != nullptr) shown->resize(policies.size());
  ParallelFor(static_cast<int>(runs.size()), flags.threads, [&](int i) {
    const auto& [job, spec] = runs[i];
    const bool show = shown != nullptr && i < static_cast<int>(shown->size());
    results[i] = RunPolicy(*job, spec, flags, *make(*job), nullptr, show ? &(*shown)[i] : nullptr);
    bar.Advance(1, job->workload.name + " x" + std::to_string(job->workers) + " " + spec.name);
  });
  if (flags.all_static) AddBestStatic(results);
  return results;
}

std::string TablesText(const std::vector<JobSpec>& jobs, const EvaluateFlags& flags,
                       const std::vector<JobResult>& results) {
  if (flags.backend == "virtual") return VirtualTables(results);
  std::map<std::string, std::string> engine;
  for (const JobSpec& job : jobs) engine[job.workload.name] = EngineOf(job.workload);
  return SimulatedTables(results, engine);
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

void Evaluate(const EvaluateFlags& flags, const VirtualSuite& suite) {
  SuiteOptions suite_options = flags.suite;
  suite_options.shipped = DataFolder() + "/scenarios";
  const std::vector<JobSpec> jobs = ListJobs(suite_options, FindWorkloadFile);
  Page page{.find_model = FindModel};
  std::vector<RunRecord>* shown = flags.report.empty() ? nullptr : &page.runs;
  const std::vector<JobResult> results = flags.backend == "virtual"
                                             ? RunVirtualSuite(jobs, flags, suite, shown)
                                             : RunSuite(jobs, flags, shown);
  const std::string text = TablesText(jobs, flags, results);
  if (flags.json) {
    std::printf("%s\n", EvaluationJson(results).dump().c_str());
  } else {
    std::printf("%s", text.c_str());
  }
  if (!flags.report.empty()) {
    page.table = text;
    WritePage(flags.report, page);
    std::fprintf(stderr, "report: %s\n", flags.report.c_str());
  }
  RequireWholeRecords(results);
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, VirtualSuite suite) {
  auto flags =
      std::make_shared<EvaluateFlags>();  // shared with the callback, which outlives this call
  CLI::App* command = app.add_subcommand(
      "evaluate", "Run policies over a suite of scenarios and compare times to target");
  command
      ->add_option("--backend", flags->backend,
                   "sim, or virtual: real SGD on the simulator's clock, to the target")
      ->check(CLI::IsMember({"sim", "virtual"}))
      ->capture_default_str();
  command
      ->add_option("--policies", flags->policies,
                   "rules (docs/rules.md), shipped policies or files, comma-separated")
      ->capture_default_str();
  command->add_option("--suite", flags->suite.path, "folder of scenario files, or one file")
      ->capture_default_str();
  command
      ->add_option("--workloads", flags->suite.workloads, "workloads instead of the scenarios' own")
      ->delimiter(',');
  command
      ->add_option("--workers", flags->suite.workers,
                   "numbers of workers instead of the scenarios' own")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--seeds", flags->suite.seeds, "jobs per scenario")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "jobs at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("!--no-static-sizes", flags->all_static, "do not run the other static sizes");
  command->add_flag("!--no-bounds", flags->bounds, "do not compute the hindsight bounds");
  command->add_option("--data", flags->data, "virtual: folder of the data set");
  command->add_option("--record", flags->record,
                      "leave a run folder FOLDER/<job>-<policy> per run (docs/training.md)");
  command->add_option("--report", flags->report, "write an HTML page with charts of the first job");
  command->add_flag("--json", flags->json, "one JSON object on stdout instead of tables");
  command->footer(
      "Examples:\n"
      "  dynamix evaluate --policies static,balanced,default --suite held_out --workers 4,8\n"
      "  dynamix evaluate --backend virtual --suite judge --workloads judge/lenet_fashion "
      "--workers 4,8");
  command->callback([flags, suite = std::move(suite)] { Evaluate(*flags, suite); });
}

}  // namespace dynamix
