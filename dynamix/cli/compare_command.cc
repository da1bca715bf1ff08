// Each run is `dynamix train` in a process of its own, so that one that fails, diverges or runs out
// of memory ends itself only, and every run starts alike. FOLDER/<policy>-<seed>/ is a run folder
// with one file more, run.json: what was run, in full. A run whose run.json matches and that has a
// summary.json is finished; one without is gone on with when it is live and has a checkpoint.
#include "dynamix/cli/compare_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/program.h"
#include "dynamix/cli/terminal.h"
#include "dynamix/cli/train_command.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/comparison.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/page/page.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/training/checkpoint.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct CompareFlags {
  TrainFlags train{.backend = "live"};
  std::string policies = "static,balanced,goodput,default";
  int seeds = 1;
  std::string run;  // folder of the comparison; empty: runs/compare-<job>
  bool json = false;
};

// One run to come.
struct PlannedRun {
  std::string policy;
  int seed;
  fs::path folder;
  std::vector<std::string> arguments;  // of dynamix train
  json identity;                       // run.json
};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

json ReadJson(const fs::path& path) {
  return json::parse(ReadFile(path), nullptr, /*allow_exceptions=*/false);
}

void WriteFile(const fs::path& path, const std::string& text) {
  if (const Status written = WriteBytes(path.string(), text); !written)
    throw std::runtime_error(written.error());
}

std::vector<std::string> Split(const std::string& names) {
  std::vector<std::string> parts;
  std::stringstream stream(names);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::string FolderName(const std::string& policy, int seed) {
  std::string name = IsRule(policy) ? policy : fs::path(policy).stem().string();
  std::replace(name.begin(), name.end(), ':', '-');
  return name + "-" + std::to_string(seed);
}

// What tells one policy file from another of the same name (FNV-1a).
std::string Digest(const std::string& policy) {
  if (IsRule(policy)) return "";
  std::uint64_t hash = 14695981039346656037u;
  for (const unsigned char c : ReadFile(FindData("policy", policy, "policies", ".safetensors")))
    hash = (hash ^ c) * 1099511628211u;
  return std::to_string(hash);
}

// The flags the user gave that every run shares, as they were given.
std::vector<std::string> SharedArguments(const CLI::App& command) {
  static const std::set<std::string> kOwn = {"--policies", "--seeds",     "--run",
                                             "--json",     "--dashboard", "--dashboard-token-file",
                                             "--help"};
  std::vector<std::string> arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || kOwn.contains(option->get_name())) continue;
    arguments.push_back(option->get_name());
    if (option->get_items_expected_max() == 0) continue;  // a flag: naming it says it all
    for (const std::string& value : option->results()) arguments.push_back(value);
  }
  return arguments;
}

PlannedRun Plan(const CompareFlags& flags, const std::vector<std::string>& shared,
                const std::string& policy, int seed, const fs::path& folder) {
  TrainFlags train = flags.train;
  train.policy = policy;
  train.seed = seed;
  PlannedRun run{policy, seed, folder / FolderName(policy, seed), shared, {}};
  if (std::find(shared.begin(), shared.end(), "--backend") == shared.end())
    run.arguments.insert(run.arguments.end(), {"--backend", flags.train.backend});
  run.arguments.insert(run.arguments.end(), {"--policy", policy, "--seed", std::to_string(seed)});
  // A static size holds from the first iteration, not from the first decision.
  if (policy.starts_with("static:")) {
    train.start_batch = std::stoi(policy.substr(7));
    const auto given = std::find(run.arguments.begin(), run.arguments.end(), "--start-batch");
    if (given != run.arguments.end()) run.arguments.erase(given, given + 2);
    run.arguments.insert(run.arguments.end(), {"--start-batch", policy.substr(7)});
  }
  run.identity = {{"arguments", run.arguments},
                  {"config", MakeJob(train).config},
                  {"policy_digest", Digest(policy)}};
  run.arguments.insert(run.arguments.end(), {"--run", run.folder.string()});
  return run;
}

std::vector<PlannedRun> PlanRuns(const CompareFlags& flags, const std::vector<std::string>& shared,
                                 const fs::path& folder) {
  const std::vector<std::string> policies = Split(flags.policies);
  if (policies.empty())
    throw InputError::OutOfRange("--policies", flags.policies, "NAME[,NAME...]");
  std::vector<PlannedRun> runs;
  std::set<fs::path> folders;
  // Seeds outside: an interrupted comparison has compared something.
  for (int seed = flags.train.seed; seed < flags.train.seed + flags.seeds; ++seed) {
    for (const std::string& policy : policies) {
      runs.push_back(Plan(flags, shared, policy, seed, folder));
      if (!folders.insert(runs.back().folder).second)
        throw InputError::OutOfRange("--policies", flags.policies, "names that differ");
    }
  }
  return runs;
}

// dynamix train, to its end; its exit code, 128 + the signal that ended it.
int RunTrain(const PlannedRun& run, bool resume, bool quiet, const InterruptFlag& interrupted) {
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe").string(), "train"};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  words.emplace_back("--compared");
  if (resume) words.emplace_back("--resume");
  if (quiet) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start another process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);  // ctrl-C reaches it once, from here
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  for (bool told = false; waitpid(child, &status, WNOHANG) == 0; usleep(50000)) {
    if (!interrupted || told) continue;
    kill(child, SIGTERM);
    told = true;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Runs what is not there yet; the summary, null when the run failed.
json Complete(const PlannedRun& run, const std::string& label, bool quiet,
              const InterruptFlag& interrupted) {
  const auto say = [&](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s %s\n", label.c_str(), text.c_str());
  };
  const bool same = ReadJson(run.folder / "run.json") == run.identity;
  const fs::path summary = run.folder / "summary.json";
  if (same && fs::exists(summary)) {
    say("is there already");
    return ReadJson(summary);
  }
  if (!same) {
    RequireRunFolder("--run", run.folder, {"run.json"});
    fs::remove_all(run.folder);
  }
  fs::create_directories(run.folder);
  const bool resume = same && HasCheckpoint(run.folder);
  if (!resume) WriteFile(run.folder / "run.json", run.identity.dump(2) + "\n");
  say(resume ? "goes on" : "begins");
  const int code = RunTrain(run, resume, quiet, interrupted);
  if (interrupted) return nullptr;
  if (code == kExitRecordLost) say("is done, but not wholly recorded");
  if ((code == 0 || code == kExitRecordLost) && fs::exists(summary)) return ReadJson(summary);
  std::fprintf(stderr, "%s failed with exit code %d\n", label.c_str(), code);
  return nullptr;
}

fs::path ComparisonFolder(const CompareFlags& flags) {
  if (!flags.run.empty()) return flags.run;
  const TrainJob job = MakeJob(flags.train);
  return fs::path("runs") / ("compare-" + flags.train.backend + "-" + job.spec.workload.name + "-" +
                             job.spec.scenario.name + "-" + std::to_string(job.spec.workers));
}

// A folder of comparisons, or none yet: an interrupted one has runs, and no comparison.json.
void RequireComparisonFolder(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "run.json", error)) return;
  RequireRunFolder("--run", folder, {"comparison.json"});
}

// All runs; false when none of them left a record.
bool ReportRuns(const fs::path& path, const std::string& table, const std::string& verdict,
                const std::vector<PlannedRun>& runs) {
  Page page{.table = table, .verdict = verdict, .find_model = FindModel};
  for (const PlannedRun& run : runs) {
    try {
      page.runs.push_back(LoadRun(run.folder));
    } catch (const InputError&) {  // it failed before its first round, and that was said
    }
  }
  if (page.runs.empty()) return false;
  WritePage(path.string(), page);
  return true;
}

void Compare(const CompareFlags& flags, const std::vector<std::string>& shared) {
  const TrainFlags& train = flags.train;
  const int ends = (train.target_accuracy > 0) + (train.target_loss > 0) + (train.time_s > 0) +
                   (train.epochs > 0);
  if (ends > 1)
    throw InputError(
        "--target, --target-loss, --time and --epochs: at most one of them says when a run ends");
  const fs::path folder = ComparisonFolder(flags);
  RequireComparisonFolder(folder);
  const std::vector<PlannedRun> plan = PlanRuns(flags, shared, folder);
  const InterruptFlag interrupted;
  const ShownFolder shown(flags.train.dashboard, {}, folder, flags.json);
  std::vector<ComparedRun> runs;
  int failed = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PlannedRun& run = plan[i];
    const std::string label = "[" + std::to_string(i + 1) + "/" + std::to_string(plan.size()) +
                              "] " + run.policy + ", seed " + std::to_string(run.seed);
    runs.push_back({run.policy, run.seed, Complete(run, label, flags.json, interrupted)});
    if (interrupted) {
      std::fprintf(stderr, "stopped; the same command goes on from %s\n", folder.c_str());
      throw Interrupted();
    }
    failed += runs.back().summary.is_null() ? 1 : 0;
  }
  const std::vector<ComparedPolicy> policies = ComparePolicies(runs);
  const std::string verdict = Verdict(policies, flags.train.time_s > 0);
  const std::size_t width = TerminalWidth(STDOUT_FILENO);
  const fs::path report = folder / "report.html";
  const bool reported = ReportRuns(report, ComparisonTable(policies), verdict, plan);
  json result = ComparisonJson(policies, runs);
  result["verdict"] = verdict;
  if (reported) result["report"] = report.string();
  WriteFile(folder / "comparison.json", result.dump(2) + "\n");
  if (flags.json) {
    std::printf("%s\n", result.dump().c_str());
  } else {
    std::printf("%s\n%s\n\nreport: %s\n", ComparisonTable(policies, width).c_str(),
                Coloured(verdict, Colour::kBold, STDOUT_FILENO).c_str(), report.c_str());
  }
  if (failed > 0)
    throw std::runtime_error(std::to_string(failed) + " of " + std::to_string(plan.size()) +
                             " runs failed; the same command tries them again");
}

}  // namespace

void AddCompareCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Run one job under several policies and tell who won");
  command
      ->add_option("--policies", flags->policies,
                   "rules (static, static:N, balanced, base, noise_scale, goodput, composite; "
                   "RULE:CONSTANT=VALUE sets a constant, docs/rules.md), shipped policies or "
                   "files; the first is what others are measured against")
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "runs per policy")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--run", flags->run, "folder of all runs; default: runs/compare-<job>");
  command->add_flag("--json", flags->json, "one JSON object on stdout instead of a table");
  AddDashboardFlags(*command, flags->train.dashboard);
  AddSharedFlags(*command, flags->train);
  command->footer(
      "Runs end at the workload's target; --target ACC, --target-loss LOSS, --time S or --epochs "
      "E\n"
      "say otherwise.\n"
      "An interrupted comparison goes on with the same command; finished runs are not repeated.\n"
      "Examples:\n"
      "  dynamix compare --cluster live/demo --policies static:32,balanced,goodput,default\n"
      "  dynamix compare --backend virtual --cluster demo --workers 8 --seeds 3 --target 0.85");
  command->callback([flags, command] { Compare(*flags, SharedArguments(*command)); });
}

}  // namespace dynamix
