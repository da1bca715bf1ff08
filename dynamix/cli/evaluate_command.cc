// dynamix evaluate: policies x suite of jobs, as ratios of times to target with intervals.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/evaluate_population.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/evaluation_tables.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/evaluation/suite_run.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/page/page.h"

namespace dynamix {
namespace {

struct EvaluateFlags {
  SuiteOptions suite{.path = "held_out"};
  PopulationFlags shared{.policies = "static,balanced,base,noise_scale,goodput,composite,default",
                         .threads = static_cast<int>(std::thread::hardware_concurrency())};
  bool all_static = true;
  bool bounds = true;
  std::string backend = "sim";
};

std::string TablesText(const std::vector<JobSpec>& jobs, const EvaluateFlags& flags,
                       const std::vector<JobResult>& results) {
  if (flags.backend == "virtual") return VirtualTables(results);
  std::map<std::string, std::string> engine;
  for (const JobSpec& job : jobs) engine[job.workload.name] = EngineOf(job.workload);
  return SimulatedTables(results, engine);
}

std::vector<JobResult> RunJobs(const std::vector<JobSpec>& jobs, const EvaluateFlags& flags,
                               const VirtualSuite& suite, std::vector<RunRecord>* shown) {
  const std::vector<PolicySpec> policies = FindPolicies(flags.shared.policies);
  std::optional<ProgressBar> bar;
  const SuiteRunOptions options{
      .backend = flags.backend,
      .record = flags.shared.record,
      .all_static = flags.all_static,
      .bounds = flags.bounds,
      .threads = flags.shared.threads,
      .find_policy = FindPolicy,
      .callbacks = {
          .begun = [&](long total,
                       long known) { bar.emplace("evaluate", total, flags.shared.json, known); },
          .finished = [&](const std::string& run) { bar->Advance(1, run); }}};
  if (flags.backend == "virtual")
    return RunVirtualSuite(jobs, policies, suite(jobs, flags.shared.data), options, shown);
  return RunSimulatedSuite(jobs, policies, LoadPools(jobs, FashionMnistFolder()), options, shown);
}

std::string SpecsText(const std::vector<JobSpec>& jobs) {
  Table table({"scenario", "workload", "workers", "seed"});
  for (const JobSpec& job : jobs)
    table.Add({job.scenario.name, job.workload.name, std::to_string(job.workers),
               std::to_string(job.seed)});
  return table.Text();
}

void RequireNone(bool given, const char* flag, const std::string& suite, const char* allowed) {
  if (given) throw InputError(std::string(flag) + " is not for --suite " + suite + ": " + allowed);
}

void EvaluateFiles(const EvaluateFlags& flags, const VirtualSuite& suite) {
  constexpr const char* kAllowed = "it is for populations (judge, validation-jobs)";
  RequireNone(!flags.shared.jobs.empty(), "--jobs", flags.suite.path, kAllowed);
  RequireNone(!flags.shared.fresh.empty(), "--fresh", flags.suite.path, kAllowed);
  RequireNone(flags.shared.length != 1, "--length", flags.suite.path, kAllowed);
  RequireNone(!flags.shared.again.empty(), "--again", flags.suite.path, kAllowed);
  SuiteOptions suite_options = flags.suite;
  suite_options.shipped = DataFolder() + "/scenarios";
  const std::vector<JobSpec> jobs = ListJobs(suite_options, FindWorkloadFile);
  if (flags.shared.list) {
    std::printf("%s", SpecsText(jobs).c_str());
    return;
  }
  Page page{.find_model = FindModel};
  std::vector<RunRecord>* shown = flags.shared.report.empty() ? nullptr : &page.runs;
  const std::vector<JobResult> results = RunJobs(jobs, flags, suite, shown);
  const std::string text = TablesText(jobs, flags, results);
  if (flags.shared.json) {
    std::printf("%s\n", EvaluationJson(results).dump().c_str());
  } else {
    std::printf("%s", text.c_str());
  }
  if (!flags.shared.report.empty()) {
    page.table = text;
    WritePage(flags.shared.report, page);
    std::fprintf(stderr, "report: %s\n", flags.shared.report.c_str());
  }
  RequireWholeRecords(results);
}

void Evaluate(const EvaluateFlags& flags, const VirtualSuite& suite) {
  const std::optional<Population> population = ParsePopulation(flags.suite.path);
  if (!population) return EvaluateFiles(flags, suite);
  if (flags.backend != "virtual" && !flags.shared.list)
    throw InputError::OutOfRange(
        "--backend", flags.backend,
        "virtual with --suite " + flags.suite.path + ": its jobs are real SGD");
  constexpr const char* kDrawn = "its jobs are drawn, each with its own";
  RequireNone(!flags.suite.workloads.empty(), "--workloads", flags.suite.path, kDrawn);
  RequireNone(!flags.suite.workers.empty(), "--workers", flags.suite.path, kDrawn);
  EvaluatePopulation(*population, flags.shared, suite);
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, VirtualSuite suite) {
  auto flags =
      std::make_shared<EvaluateFlags>();  // shared with the callback, which outlives this call
  CLI::App* command = app.add_subcommand(
      "evaluate", "Run policies over a suite of jobs and compare times to target");
  command
      ->add_option("--backend", flags->backend,
                   "sim, or virtual: real SGD on the simulator's clock, to the target")
      ->check(CLI::IsMember({"sim", "virtual"}))
      ->capture_default_str();
  command
      ->add_option(
          "--policies", flags->shared.policies,
          "rules (docs/rules.md), shipped policies or files, comma-separated; guarded:NAME "
          "gives one the guard of live jobs, steps:NAME lets its jobs' schedules run by steps")
      ->capture_default_str();
  command
      ->add_option("--suite", flags->suite.path,
                   "folder of scenario files, or one file; with --backend virtual also judge or "
                   "validation-jobs: a population of jobs with real SGD (docs/judge.md)")
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
  command->add_option("--threads", flags->shared.threads, "jobs at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag_callback(
      "--no-static-sizes", [flags] { flags->all_static = false; },
      "do not run the other static sizes");
  command->add_flag_callback(
      "--no-bounds", [flags] { flags->bounds = false; }, "do not compute the hindsight bounds");
  command->add_option("--data", flags->shared.data, "virtual: folder of the data set");
  command->add_option("--record", flags->shared.record,
                      "leave a run folder FOLDER/<job>-<policy> per run (docs/training.md)");
  command->add_option(
      "--report", flags->shared.report,
      "write an HTML page: charts of the first job, or a dot per job of a population");
  AddPopulationFlags(*command, flags->shared);
  command->add_flag("--json", flags->shared.json, "one JSON object on stdout instead of tables");
  command->footer(
      "Examples:\n"
      "  dynamix evaluate --policies static,balanced,default --suite held_out --workers 4,8\n"
      "  dynamix evaluate --backend virtual --suite validation-jobs --policies "
      "default,mine.safetensors "
      "--report judge.html");
  command->callback([flags, suite = std::move(suite)] { Evaluate(*flags, suite); });
}

}  // namespace dynamix
