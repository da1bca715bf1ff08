// dynamix learn: PPO over many simulated clusters at once; keeps the checkpoint that is best on
// validation.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/learning_tasks.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/ppo/learned_policy.h"
#include "dynamix/record/run_folder.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

struct LearnFlags {
  LearningRunOptions run;
  DistributionOptions tasks;
  std::string actions = Format(LearningOptions{}.actions);
  std::vector<std::string> fitted = FittedWorkloads();
  std::string out = "learned.safetensors";
  std::string folder = "runs/learn";
  std::string start;
  std::string config;
  int validation_tasks = 80;
  int validate_every = 10;
  bool resume = false;
  bool json = false;
};

std::string ScoreText(const Validation::Score& score) {
  return Fixed(score.all, 3) + " (quadratics " + Fixed(score.quadratics, 3) + ", miniatures " +
         Fixed(score.miniatures, 3) + ")";
}

// The rules' scores, so that the learner's have something to stand beside.
void PrintRules(const Validation& validation, bool json) {
  if (json) return;
  std::fprintf(stderr, "time to target over the reference's, on the validation tasks:\n");
  for (const std::string& rule : RuleNames())
    std::fprintf(stderr, "  %-12s %s\n", rule.c_str(),
                 ScoreText(validation.Run(RuleSpec(rule))).c_str());
}

class Learning {
 public:
  Learning(const LearnFlags& flags, const std::string& config)
      : flags_(flags),
        config_(config),
        run_(flags.run, SimulatorTasks(flags.tasks, flags.run.tasks, flags.run.seed)),
        validation_(flags.tasks, flags.validation_tasks, flags.run.seed,
                    flags.run.learning.threads) {}

  void Run() {
    fs::create_directories(flags_.folder);
    Begin();
    // Not before: a run that cannot go on keeps the settings it was made with.
    Require(WriteBytes(flags_.folder + "/config.toml", config_));
    PrintRules(validation_, flags_.json);
    const InterruptFlag interrupted;
    ProgressBar bar("learn", flags_.run.updates - run_.updates(), flags_.json);
    while (!run_.Done() && !interrupted) {
      const LearningRun::Step step = run_.Advance();
      const bool validate = run_.updates() % flags_.validate_every == 0 || run_.Done();
      if (validate) Validate();
      Record(step, validate);
      if (validate || interrupted) Require(run_.Save(Checkpoints()));
      bar.Advance(1, "speed-up " + Fixed(1 + step.mean_reward.quality, 2) + ", wait " +
                         Fixed(-100 * step.mean_reward.efficiency, 0) + " %, validation " +
                         Fixed(score_.all, 3) +
                         (best_ < kNoScore ? ", best " + Fixed(best_, 3) : ""));
    }
    if (!run_.Done()) {
      std::fprintf(stderr,
                   "\ninterrupted after update %d; continue with the same flags and --resume\n",
                   run_.updates());
      throw Interrupted();
    }
    Finish();
  }

 private:
  std::string Checkpoints() const { return flags_.folder + "/checkpoints"; }
  std::string Best() const { return flags_.folder + "/best.json"; }

  double ReadBest() const {
    const Result<std::string> text = ReadBytes(Best());
    Require(text ? Status(Nothing{}) : Status(Error{text.error()}));
    const auto told = nlohmann::json::parse(text.value(), nullptr, /*allow_exceptions=*/false);
    if (told.is_object() && told.contains("validation") && told["validation"].is_number())
      return told["validation"];
    throw InputError(Best() + " is damaged: without it a worse policy may replace " + flags_.out +
                     ". Remove it to go on all the same");
  }

  static void Require(const Status& status) {
    if (!status) throw std::runtime_error(status.error());
  }

  void Begin() {
    if (flags_.resume) {
      Require(run_.Restore(Checkpoints()));
      // None yet when it was stopped before the first validation.
      if (fs::exists(Best())) best_ = ReadBest();
    } else if (!flags_.start.empty()) {
      Result<PolicyModel> model = LoadPolicy(flags_.start);
      if (!model) throw InputError(flags_.start + ": " + model.error());
      Require(run_.learner().Adopt(model.value()));
    }
  }

  PolicyModel Model() {
    std::map<std::string, std::string> training = {
        {"seed", std::to_string(flags_.run.seed)},
        {"updates", std::to_string(run_.updates())},
        {"miniature_share", Fixed(flags_.tasks.miniature_share, 2)},
        {"workers",
         std::to_string(flags_.tasks.min_workers) + "-" + std::to_string(flags_.tasks.max_workers)},
        {"validation", ScoreText(score_)}};
    return run_.learner().Model(flags_.run.learning.actions, flags_.run.learning.objective,
                                std::move(training));
  }

  void Validate() {
    const PolicyModel model = Model();
    score_ = validation_.Run({"learned", model.actions, [&model] {
                                return std::make_unique<LearnedPolicy>(model, Choice::kGreedy);
                              }});
    if (score_.all >= best_) return;
    best_ = score_.all;
    Require(SavePolicy(flags_.out, Model()));
    const nlohmann::json best = {{"validation", best_}, {"updates", run_.updates()}};
    Require(WriteBytes(Best(), best.dump() + "\n"));
  }

  void Record(const LearningRun::Step& step, bool validated) {
    nlohmann::json line = {{"update", run_.updates()},
                           {"windows", step.windows},
                           {"jobs_finished", step.jobs_finished},
                           {"jobs_missed", step.jobs_missed},
                           {"quality", step.mean_reward.quality},
                           {"efficiency", step.mean_reward.efficiency},
                           {"stability", step.mean_reward.stability}};
    const auto add = [&line](const char* head, const std::optional<UpdateStatistics>& s) {
      if (!s) return;
      line[head] = {{"entropy", s->entropy},
                    {"kl", s->kl},
                    {"value_loss", s->value_loss},
                    {"explained_variance", s->explained_variance},
                    {"clip_fraction", s->clip_fraction},
                    {"rows", s->rows}};
    };
    add("team", step.statistics.team);
    add("local", step.statistics.local);
    if (validated)
      line["validation"] = {{"all", score_.all},
                            {"quadratics", score_.quadratics},
                            {"miniatures", score_.miniatures}};
    std::ofstream log(flags_.folder + "/learning.jsonl", std::ios::app);
    if (!(log << line << std::endl))
      throw std::runtime_error("cannot write " + flags_.folder + "/learning.jsonl");
    if (flags_.json) std::printf("%s\n", line.dump().c_str());
  }

  void Finish() const {
    if (flags_.json) return;
    std::printf("best policy on validation: %s of the reference's time\nwritten to %s\n",
                Fixed(best_, 3).c_str(), flags_.out.c_str());
  }

  LearnFlags flags_;
  std::string config_;
  LearningRun run_;
  Validation validation_;
  Validation::Score score_{1, 1, 1};
  static constexpr double kNoScore = 1e9;
  double best_ = kNoScore;
};

std::vector<QuadraticOptions> LoadFitted(const std::vector<std::string>& names) {
  std::vector<QuadraticOptions> fitted;
  if (names == std::vector<std::string>{"none"}) return fitted;
  for (const std::string& name : names) {
    const Workload workload = LoadWorkload(FindData("workload", name, "workloads", ".toml"));
    const auto* quadratic = std::get_if<QuadraticOptions>(&workload.convergence);
    if (quadratic == nullptr)
      throw InputError::OutOfRange("--fitted", name, "workloads with a quadratic engine");
    fitted.push_back(*quadratic);
  }
  return fitted;
}

// Found out before the work, not after it.
void RequireFolderOf(const std::string& flag, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  const std::string named = folder.empty() ? "." : folder.string();
  if (!fs::is_directory(named) || ::access(named.c_str(), W_OK) != 0)
    throw InputError::OutOfRange(flag, file, "a file in a folder that can be written");
}

void Learn(LearnFlags flags, const std::string& config) {
  if (!flags.folder.empty()) RequireRunFolder("--run", flags.folder);
  RequireFolderOf("--out", flags.out);
  flags.run.learning.actions = ParseActionOptions(flags.actions);
  flags.run.learning.max_workers = flags.tasks.max_workers;
  flags.run.Validate();
  flags.tasks.pools = LoadAllPools(FashionMnistFolder());
  flags.tasks.fitted = LoadFitted(flags.fitted);
  flags.tasks.Validate();
  Learning(flags, config).Run();
}

// What the file says about flags that the command line does not. (CLI11 reads such files for a whole
// program only.)
void ReadConfig(const std::string& path, CLI::App& command) {
  const Result<std::string> text = ReadBytes(path);
  if (!text) throw InputError("--config " + path + ": " + text.error());
  std::istringstream file(text.value());
  for (const CLI::ConfigItem& item : command.get_config_formatter()->from_config(file)) {
    CLI::Option* option = command.get_option_no_throw("--" + item.name);
    if (option == nullptr || !item.parents.empty())
      throw InputError("--config " + path + ": " + item.fullname() + " is not a flag of learn");
    if (option->count() > 0) continue;  // the command line has the last word
    if (item.inputs.empty() || (item.inputs.size() == 1 && item.inputs.front().empty())) continue;
    const bool flag = option->get_expected_min() == 0;
    option->add_result(flag ? std::vector{option->get_flag_value(item.name, item.inputs.front())}
                            : item.inputs);
    option->run_callback();
  }
}

void AddPpoFlags(CLI::App& command, const std::string& head, PpoOptions& ppo) {
  const auto add = [&](const char* name, auto& field, const char* text) {
    command.add_option("--" + head + "-" + name, field, text)->capture_default_str();
  };
  add("learning-rate", ppo.learning_rate, "Adam's step size");
  add("entropy", ppo.entropy_coefficient, "entropy bonus at the start");
  add("epochs", ppo.epochs, "passes over a rollout");
  add("minibatches", ppo.minibatches, "parts of a pass");
  add("lambda", ppo.lambda, "GAE lambda");
  add("target-kl", ppo.target_kl, "KL at which a pass stops; 0 never");
}

}  // namespace

void AddLearnCommand(CLI::App& app) {
  auto flags =
      std::make_shared<LearnFlags>();  // shared with the callback, which outlives this call
  CLI::App* command =
      app.add_subcommand("learn", "Learn a policy by PPO over many simulated clusters");
  LearningOptions& learning = flags->run.learning;
  const auto add = [&](const char* name, auto& field, const char* text) {
    return command->add_option(name, field, text)->capture_default_str();
  };
  add("--config", flags->config, "read flags from a file, e.g. the config.toml of a run")
      ->configurable(false);
  add("--out", flags->out, "policy file to write: the best on validation");
  add("--run", flags->folder, "folder for checkpoints, log and effective configuration");
  command->add_flag("--resume", flags->resume, "continue the run in that folder")
      ->configurable(false);
  add("--start", flags->start, "policy file to start from");
  add("--updates", flags->run.updates, "PPO updates");
  add("--seed", flags->run.seed, "everything random follows from it");
  add("--threads", learning.threads, "threads");
  add("--jobs", learning.jobs, "simulated jobs in lock step");
  command
      ->add_option_function<int>(
          "--steps", [flags](int n) { flags->run.team_ppo.steps = flags->run.local_ppo.steps = n; },
          "windows of each job between updates")
      ->default_str(std::to_string(flags->run.team_ppo.steps));
  add("--tasks", flags->run.tasks, "different tasks");
  add("--miniatures", flags->tasks.miniature_share, "share of tasks that are miniatures");
  add("--min-workers", flags->tasks.min_workers, "smallest cluster");
  add("--max-workers", flags->tasks.max_workers, "largest cluster");
  add("--window", flags->tasks.window_iterations, "iterations of a window");
  command
      ->add_option(
          "--fitted", flags->fitted,
          "workloads fitted to real runs, which some of the quadratics start from; or none")
      ->delimiter(',')
      ->capture_default_str();
  add("--actions", flags->actions,
      "KIND,BASE,LEVELS: guided|anchored|wide|relative|additive, share|current, "
      "team|local|team+local");
  command
      ->add_option("--without", learning.without,
                   "families of features to do without, or single ones (ablation)")
      ->delimiter(',');
  add("--hidden", flags->run.hidden, "widths of the tanh layers");
  add("--team-discount", learning.objective.team_discount, "per unit of time");
  add("--local-discount", learning.objective.local_discount, "per unit of time");
  add("--missed-cost", learning.objective.missed_cost,
      "reference runs that a job costs whose schedule ends before its target");
  add("--units", learning.objective.units_per_run, "units of time in a reference run");
  add("--reward-quality", learning.objective.reward.quality, "weight of progress");
  add("--reward-efficiency", learning.objective.reward.efficiency, "weight of waiting");
  add("--reward-stability", learning.objective.reward.stability, "weight of oscillation");
  add("--reward-straggler", learning.objective.reward.straggler,
      "local: weight of the wait a worker causes");
  add("--reward-team", learning.objective.reward.team, "local: weight of the team reward");
  AddPpoFlags(*command, "team", flags->run.team_ppo);
  AddPpoFlags(*command, "local", flags->run.local_ppo);
  add("--validation-tasks", flags->validation_tasks, "tasks checkpoints are selected on")
      ->check(CLI::Range(1, 10000));
  add("--validate-every", flags->validate_every, "updates between validations and checkpoints")
      ->check(CLI::Range(1, 10000));
  command->add_flag("--json", flags->json, "one JSON line per update on stdout");
  command->footer("Example:\n  dynamix learn --updates 300 --out my.safetensors --run runs/my");
  command->callback([flags, command] {
    if (!flags->config.empty()) ReadConfig(flags->config, *command);
    Learn(*flags, command->config_to_str(true, false));
  });
}

}  // namespace dynamix
