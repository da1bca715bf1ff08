#include "dynamix/cli/evaluate_population.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/again.h"
#include "dynamix/evaluation/judge_tables.h"
#include "dynamix/page/judge_page.h"

namespace dynamix {
namespace {

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::vector<PopulationJob> Chosen(const std::vector<PopulationJob>& jobs,
                                  const std::vector<std::string>& names) {
  if (names.empty()) return jobs;
  std::vector<PopulationJob> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(jobs.begin(), jobs.end(),
                                    [&](const PopulationJob& job) { return job.name() == name; });
    if (found == jobs.end())
      throw InputError::OutOfRange("--jobs", name,
                                   jobs.front().name() + " to " + jobs.back().name());
    if (std::count(names.begin(), names.end(), name) > 1)
      throw InputError::OutOfRange("--jobs", name, "each job once");
    chosen.push_back(*found);
  }
  return chosen;
}

// Every policy is measured against static, asked for or not.
std::vector<PolicySpec> PoliciesWithStatic(const std::string& names) {
  std::vector<PolicySpec> policies = FindPolicies(names);
  for (const PolicySpec& policy : policies) {
    const auto same = [&](const PolicySpec& other) { return other.name == policy.name; };
    if (std::count_if(policies.begin(), policies.end(), same) > 1)
      throw InputError::OutOfRange("--policies", policy.name, "each policy once");
  }
  const auto is_static = [](const PolicySpec& policy) { return policy.name == "static"; };
  if (std::none_of(policies.begin(), policies.end(), is_static))
    policies.insert(policies.begin(), FindPolicy("static"));
  return policies;
}

void RequireAgain(const PopulationFlags& flags, const std::vector<PolicySpec>& policies) {
  std::string names;
  for (const PolicySpec& policy : policies) {
    if (policy.name == "static") continue;
    if (policy.name == flags.again) return;
    names += (names.empty() ? "" : ", ") + policy.name;
  }
  if (!flags.again.empty())
    throw InputError::OutOfRange(
        "--again", flags.again, names.empty() ? "another policy of --policies than static" : names);
}

void RequireFresh(const PopulationFlags& flags, const std::vector<PolicySpec>& policies) {
  for (const std::string& name : flags.fresh) {
    const auto known = [&](const PolicySpec& policy) { return policy.name == name; };
    if (name != kReference && std::none_of(policies.begin(), policies.end(), known))
      throw InputError::OutOfRange("--fresh", name,
                                   "policies of --policies, or " + std::string(kReference));
  }
}

// The data sets that are needed, and where they are looked for.
std::string DataText(const std::vector<PopulationJob>& jobs, const std::string& folder) {
  std::string text;
  for (const std::string& name : DatasetsOf(jobs))
    text += (text.empty() ? "" : ", ") + name + " (" +
            (folder.empty() ? DatasetFolder(name) : folder) + ")";
  return text;
}

void SayWhatRuns(Population population, const std::vector<PopulationJob>& jobs,
                 std::size_t policies, const PopulationFlags& flags) {
  if (flags.json) return;
  std::fprintf(stderr, "%s: %zu jobs, %zu policies; data: %s; runs are kept in %s\n",
               std::string(Name(population)).c_str(), jobs.size(), policies,
               DataText(jobs, flags.data).c_str(), flags.cache.c_str());
}

std::vector<JobSpec> SpecsOf(const std::vector<PopulationJob>& jobs) {
  std::vector<JobSpec> specs;
  for (const PopulationJob& job : jobs) specs.push_back(job.spec);
  return specs;
}

// Calls `run` with the options of a judgement: progress is shown, and ctrl-C ends it.
template <typename Run>
auto Watched(const PopulationFlags& flags, Run run) {
  const InterruptFlag interrupted;
  std::optional<ProgressBar> bar;
  JudgeOptions options{.cache = flags.cache, .fresh = {flags.fresh.begin(), flags.fresh.end()}};
  options.runs.backend = "virtual";
  options.runs.record = flags.record;
  options.runs.threads = flags.threads;
  options.runs.callbacks = {
      .begun = [&](long total, long known) { bar.emplace("evaluate", total, flags.json, known); },
      .finished = [&](const std::string& name) { bar->Advance(1, name); },
      .window =
          [&] {
            if (interrupted) throw Interrupted();
          }};
  try {
    return run(options);
  } catch (const Interrupted&) {
    std::fprintf(stderr, "\nstopped; the same command goes on with the runs in %s\n",
                 flags.cache.c_str());
    throw;
  }
}

}  // namespace

void AddPopulationFlags(CLI::App& command, PopulationFlags& flags) {
  command
      .add_option("--cache", flags.cache,
                  "judge, validation-jobs: folder of finished runs and of the results")
      ->capture_default_str();
  command.add_option("--jobs", flags.jobs, "judge, validation-jobs: only these jobs, by name")
      ->delimiter(',');
  command
      .add_option("--fresh", flags.fresh,
                  "judge, validation-jobs: policies whose runs are made again")
      ->delimiter(',');
  command
      .add_option("--length", flags.length,
                  "judge, validation-jobs: of every job, below 1 for a first look only")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  command.add_option(
      "--again", flags.again,
      "judge, validation-jobs: a policy of --policies whose lost jobs are run again, "
      "with other seeds");
  command
      .add_option("--again-seeds", flags.again_seeds,
                  "judge, validation-jobs: how many seeds --again takes")
      ->needs("--again")
      ->check(CLI::Range(2, 100))
      ->capture_default_str();
  command.add_flag("--list", flags.list, "show the jobs, run nothing");
}

void EvaluatePopulation(Population population, const PopulationFlags& flags,
                        const VirtualSuite& suite) {
  const std::vector<PopulationJob> all = DrawPopulation(population);
  const std::vector<PopulationJob> jobs = Shortened(Chosen(all, flags.jobs), flags.length);
  if (flags.list) {
    std::printf("%s\ndata: %s\n", JobsText(jobs).c_str(), DataText(jobs, flags.data).c_str());
    return;
  }
  const std::vector<PolicySpec> policies = PoliciesWithStatic(flags.policies);
  RequireAgain(flags, policies);
  RequireFresh(flags, policies);
  if (std::filesystem::is_directory(flags.report))
    throw InputError::OutOfRange("--report", flags.report, "a file, not a folder");
  const VirtualMaker make = suite(SpecsOf(jobs), flags.data);
  SayWhatRuns(population, jobs, policies.size(), flags);
  Judgement judgement = Watched(flags, [&](const JudgeOptions& options) {
    return Judge(population, jobs, policies, make, options);
  });
  judgement.whole = jobs.size() == all.size() && flags.length == 1;
  const std::filesystem::path results =
      std::filesystem::path(flags.cache) / (judgement.suite + ".json");
  nlohmann::json json = WriteJudgement(results, judgement, Now());
  if (!flags.report.empty()) WriteJudgePage(flags.report, judgement);
  std::optional<Again> again;
  if (!flags.again.empty()) {
    again = Watched(flags, [&](const JudgeOptions& options) {
      return RunAgain(population, judgement, flags.again, flags.again_seeds, policies, make,
                      options);
    });
  }
  if (flags.json) {
    if (again) json["again"] = AgainJson(*again);
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf("%s\n%sresults: %s\n", JudgeText(judgement).c_str(),
                again ? (AgainText(*again) + "\n").c_str() : "", results.c_str());
  }
  if (!flags.report.empty()) std::fprintf(stderr, "report: %s\n", flags.report.c_str());
  RequireWholeRecords(judgement.results);
}

}  // namespace dynamix
