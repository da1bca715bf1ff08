// dynamix evaluate: policies x scenario suite, as ratios of times to target with confidence
// intervals.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "dynamix/arbitrator/evaluation.h"
#include "dynamix/arbitrator/parallel.h"
#include "dynamix/cli/commands.h"
#include "dynamix/cli/policy_spec.h"
#include "dynamix/cli/progress.h"
#include "dynamix/cli/report.h"
#include "dynamix/cli/suite.h"
#include "dynamix/cli/table.h"
#include "dynamix/core/input_error.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/simulator/clairvoyant.h"

namespace dynamix {
namespace {

struct EvaluateFlags {
  SuiteOptions suite{.path = "held_out"};
  std::string policies = "static,balanced,noise_scale,goodput,default";
  bool all_static = true;
  bool bounds = true;
  bool json = false;
  int threads = 2;
  std::string report;
  std::string record;
};

const std::vector<std::string> kBaselines = {
    "static", "best_static", "balanced", "noise_scale", "goodput", "best_constant", "clairvoyant"};

JobResult Named(JobResult result, const SuiteJob& job, const std::string& policy) {
  result.scenario = job.scenario.name;
  result.workload = job.workload.name;
  result.workers = job.workers;
  result.seed = job.seed;
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

// One line of rounds.jsonl: what was seen, what was decided.
nlohmann::json RoundJson(const Round& round, const Arbitrator& arbitrator, const Truth& truth) {
  nlohmann::json line = {{"round", round.index},
                         {"seconds", truth.seconds},
                         {"accuracy", truth.held_out_accuracy},
                         {"loss", truth.held_out_loss},
                         {"team_state", arbitrator.states().team}};
  for (const RoundEntry& entry : round.entries)
    line["batches"].push_back(entry.active ? entry.batch : 0);
  if (const auto* actions = std::get_if<Actions>(&arbitrator.decisions())) {
    line["team_action"] = actions->team;
    line["local_actions"] = actions->local;
  }
  return line;
}

// Fills `trace`, and `lines` if there is a folder to record to, while a job runs.
WindowCallback Recorder(Trace& trace, bool record, std::string& lines) {
  return [&trace, record, &lines](const Round& round, const Arbitrator& arbitrator,
                                  const Truth& truth) {
    if (record) lines += RoundJson(round, arbitrator, truth).dump() + "\n";
    trace.seconds.push_back(truth.seconds);
    trace.accuracy.push_back(truth.held_out_accuracy);
    std::vector<int>& batches = trace.batches.emplace_back();
    for (const RoundEntry& entry : round.entries) batches.push_back(entry.active ? entry.batch : 0);
  };
}

void WriteRounds(const std::string& folder, const SuiteJob& job, const std::string& policy,
                 const std::string& lines) {
  std::string name = job.scenario.name + "-" + job.workload.name + "-" +
                     std::to_string(job.workers) + "-" + std::to_string(job.seed) + "-" + policy;
  std::replace(name.begin(), name.end(), '/', '_');
  const std::filesystem::path own = std::filesystem::path(folder) / name;
  std::filesystem::create_directories(own);
  std::ofstream(own / "rounds.jsonl") << lines;
}

JobResult BoundResult(const Bound& bound) {
  JobResult result;
  result.time_to_target_s = bound.time_to_target_s;
  result.reached = bound.reached;
  result.final_accuracy = bound.final_accuracy;
  return result;
}

std::vector<JobResult> RunSuiteJob(const SuiteJob& job, const std::vector<PolicySpec>& policies,
                                   const EvaluateFlags& flags, const MiniaturePools& pools,
                                   std::vector<Trace>* traces) {
  const Task task = MakeTask(job.scenario, job.workload, job.workers, job.seed, pools);
  std::vector<PolicySpec> all = policies;
  if (flags.all_static) {
    for (PolicySpec& spec : StaticSizes(task)) all.push_back(std::move(spec));
  }
  std::vector<JobResult> results;
  for (const PolicySpec& spec : all) {
    const auto environment = task.MakeEnvironment();
    const auto policy = spec.make();
    Arbitrator arbitrator(*policy, spec.actions, Rng(job.seed));
    Trace trace{.policy = spec.name};
    std::string lines;
    const JobResult result = RunJob(*environment, arbitrator, task.reference_seconds,
                                    Recorder(trace, !flags.record.empty(), lines));
    if (!flags.record.empty()) WriteRounds(flags.record, job, spec.name, lines);
    results.push_back(Named(result, job, spec.name));
    if (traces != nullptr && traces->size() < policies.size()) traces->push_back(std::move(trace));
  }
  if (flags.bounds) {
    results.push_back(Named(BoundResult(BestConstantBatch(task)), job, "best_constant"));
    if (task.workload.is_quadratic())
      results.push_back(Named(BoundResult(Clairvoyant(task)), job, "clairvoyant"));
  }
  return results;
}

// `traces`: of the first job, under the policies the user named.
std::vector<JobResult> RunSuite(const std::vector<SuiteJob>& jobs, const EvaluateFlags& flags,
                                std::vector<Trace>& traces) {
  const std::vector<PolicySpec> policies = FindPolicies(flags.policies);
  const MiniaturePools pools = LoadPools(jobs);
  Progress progress("evaluate", static_cast<long>(jobs.size()), flags.json);
  std::vector<std::vector<JobResult>> parts(jobs.size());
  ParallelFor(static_cast<int>(jobs.size()), flags.threads, [&](int i) {
    parts[i] = RunSuiteJob(jobs[i], policies, flags, pools, i == 0 ? &traces : nullptr);
    progress.Advance(1, jobs[i].scenario.name);
  });
  std::vector<JobResult> results;
  for (auto& part : parts) results.insert(results.end(), part.begin(), part.end());
  if (flags.all_static) AddBestStatic(results);
  return results;
}

std::vector<JobResult> Where(const std::vector<JobResult>& results, auto predicate) {
  std::vector<JobResult> chosen;
  std::copy_if(results.begin(), results.end(), std::back_inserter(chosen), predicate);
  return chosen;
}

// The policies worth a line: not every static size.
std::vector<std::string> ShownPolicies(const std::vector<JobResult>& results) {
  std::vector<std::string> names = PolicyNames(results);
  std::erase_if(names, [](const std::string& name) { return name.starts_with("static:"); });
  return names;
}

std::string ScenariosText(const std::vector<JobResult>& results) {
  const std::vector<std::string> policies = ShownPolicies(results);
  std::vector<std::string> header = {"time / static's, by scenario"};
  header.insert(header.end(), policies.begin(), policies.end());
  Table table(header);
  std::set<std::pair<std::string, int>> rows;
  for (const JobResult& r : results) rows.insert({r.scenario, r.workers});
  for (const auto& [scenario, workers] : rows) {
    const auto chosen = Where(results, [&](const JobResult& r) {
      return r.scenario == scenario && r.workers == workers;
    });
    std::vector<std::string> row = {scenario + " x" + std::to_string(workers)};
    for (const std::string& policy : policies) {
      const Interval ratio = CompareTimes(chosen, policy, "static");
      row.push_back(ratio.jobs > 0 ? Fixed(ratio.mean, 3) : "-");
    }
    table.Add(row);
  }
  return table.Text() + "\n";
}

std::string SummaryText(const std::string& title, const std::vector<JobResult>& results) {
  std::vector<std::string> header = {title};
  for (const std::string& baseline : kBaselines) header.push_back("/ " + baseline);
  header.insert(header.end(), {"reached", "accuracy"});
  Table table(header);
  for (const std::string& policy : ShownPolicies(results)) {
    std::vector<std::string> row = {policy};
    for (const std::string& baseline : kBaselines) {
      const Interval ratio = CompareTimes(results, policy, baseline);
      row.push_back(ratio.jobs == 0 ? "-"
                                    : Fixed(ratio.mean, 3) + " [" + Fixed(ratio.low, 2) + "," +
                                          Fixed(ratio.high, 2) + "]");
    }
    const auto own = Where(results, [&](const JobResult& r) { return r.policy == policy; });
    double reached = 0, accuracy = 0;
    for (const JobResult& r : own) {
      reached += r.reached;
      accuracy += r.final_accuracy;
    }
    row.push_back(Fixed(100 * reached / static_cast<double>(own.size()), 0) + " %");
    row.push_back(Fixed(accuracy / static_cast<double>(own.size()), 4));
    table.Add(row);
  }
  return table.Text() + "\n";
}

nlohmann::json ResultJson(const JobResult& r) {
  return {{"scenario", r.scenario},
          {"workload", r.workload},
          {"workers", r.workers},
          {"policy", r.policy},
          {"seed", r.seed},
          {"time_to_target_s", r.time_to_target_s},
          {"reached", r.reached},
          {"final_accuracy", r.final_accuracy},
          {"mean_wait_share", r.mean_wait_share}};
}

void PrintJson(const std::vector<JobResult>& results) {
  nlohmann::json list = nlohmann::json::array(), summary = nlohmann::json::object();
  for (const JobResult& r : results) list.push_back(ResultJson(r));
  for (const std::string& policy : ShownPolicies(results)) {
    for (const std::string& baseline : kBaselines) {
      const Interval ratio = CompareTimes(results, policy, baseline);
      if (ratio.jobs == 0) continue;
      summary[policy]["geomean_vs_" + baseline] = ratio.mean;
      summary[policy]["interval_vs_" + baseline] = {ratio.low, ratio.high};
    }
  }
  std::printf("%s\n", nlohmann::json{{"results", list}, {"summary", summary}}.dump().c_str());
}

constexpr const char* kLegend =
    "Geometric means over jobs with 95 % intervals; below 1 is faster. A job that missed its "
    "target\n"
    "counts with its whole budget. best_static: the best static size in hindsight. best_constant: "
    "the\n"
    "best constant global batch in hindsight, with true balanced shares. clairvoyant: the best "
    "schedule\n"
    "found with full knowledge of the model and of future events.\n";

std::string TablesText(const std::vector<SuiteJob>& jobs, const std::vector<JobResult>& results) {
  std::map<std::string, std::string> engine;
  for (const SuiteJob& job : jobs)
    engine[job.workload.name] = job.workload.is_quadratic() ? "quadratics" : "miniatures";
  std::string text = ScenariosText(results);
  for (const std::string name : {"quadratics", "miniatures"}) {
    const auto chosen =
        Where(results, [&](const JobResult& r) { return engine[r.workload] == name; });
    if (!chosen.empty()) text += SummaryText("time ratio, " + name, chosen);
  }
  return text + kLegend;
}

void WriteReport(const std::string& path, const SuiteJob& job, const std::string& table,
                 std::vector<Trace> traces) {
  const ReportPage page{.title = job.scenario.name + ", " + job.workload.name + ", " +
                                 std::to_string(job.workers) + " workers",
                        .description = job.scenario.description + " " + job.workload.description +
                                       ". The charts show the first job of the table.",
                        .table = table,
                        .traces = std::move(traces)};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream file(path);
  file << RenderReport(page);
  if (!file.flush()) throw std::runtime_error("cannot write the report " + path);
}

void Evaluate(const EvaluateFlags& flags) {
  const std::vector<SuiteJob> jobs = ListJobs(flags.suite);
  std::vector<Trace> traces;
  const std::vector<JobResult> results = RunSuite(jobs, flags, traces);
  const std::string text = TablesText(jobs, results);
  if (flags.json) {
    PrintJson(results);
  } else {
    std::printf("%s", text.c_str());
  }
  if (flags.report.empty()) return;
  WriteReport(flags.report, jobs.front(), text, std::move(traces));
  std::fprintf(stderr, "report: %s\n", flags.report.c_str());
}

}  // namespace

void AddEvaluateCommand(CLI::App& app) {
  auto flags =
      std::make_shared<EvaluateFlags>();  // shared with the callback, which outlives this call
  CLI::App* command = app.add_subcommand(
      "evaluate", "Run policies over a suite of scenarios and compare times to target");
  command
      ->add_option("--policies", flags->policies,
                   "rules, shipped policies or files, comma-separated")
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
  command->add_option("--record", flags->record,
                      "write FOLDER/<job>-<policy>/rounds.jsonl, a line per round");
  command->add_option("--report", flags->report, "write an HTML page with charts of the first job");
  command->add_flag("--json", flags->json, "one JSON object on stdout instead of tables");
  command->footer(
      "Example:\n  dynamix evaluate --policies static,balanced,default --suite held_out --workers "
      "4,8");
  command->callback([flags] { Evaluate(*flags); });
}

}  // namespace dynamix
