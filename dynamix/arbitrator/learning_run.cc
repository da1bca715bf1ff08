#include "dynamix/arbitrator/learning_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/host/failpoint.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFile = "run.json";
constexpr const char* kLearnerFile = "learner.safetensors";
constexpr const char* kLatestFile = "latest";

LearnerOptions LearnerFor(const LearningRunOptions& options) {
  options.Validate();
  return MakeLearnerOptions(options.learning, options.team_ppo, options.local_ppo, options.hidden,
                            options.seed);
}

}  // namespace

WindowOutcome OutcomeOf(const LearningTask& task, const Objective& objective, double& tau) {
  const Truth& truth = task.environment->truth();
  const bool missed = truth.schedule_ended && !truth.reached;
  WindowOutcome outcome;
  const double now = task.tau(truth.held_out_loss);
  outcome.progress_seconds = now - std::exchange(tau, now);
  outcome.time_scale_s = task.reference_seconds / objective.units_per_run;
  outcome.end = truth.reached || missed ? StepEnd::kTerminated
                : truth.out_of_time     ? StepEnd::kTruncated
                                        : StepEnd::kContinues;
  if (missed) outcome.lump = -objective.missed_cost * objective.units_per_run;
  return outcome;
}

void LearningRunOptions::Validate() const {
  learning.Validate();
  team_ppo.Validate();
  local_ppo.Validate();
  RequireInRange("updates", updates, 1, 1000000);
  RequireInRange("tasks", tasks, std::int64_t{1}, std::int64_t{1} << 40);
}

LearningRun::LearningRun(const LearningRunOptions& options, TaskSource source)
    : options_(options),
      source_(std::move(source)),
      rng_(Rng(options.seed).Fork(1)),
      learner_(LearnerFor(options)),
      arbitrator_(options.learning, learner_),
      slots_(options.learning.jobs) {}

void LearningRun::Begin(int slot) {
  slots_[slot].number = static_cast<std::int64_t>(rng_.Below(options_.tasks));
  slots_[slot].course = rng_.Next();
  slots_[slot].sizes.clear();
}

Round LearningRun::Open(Slot& slot) const {
  slot.task = source_(slot.number, slot.course);
  Environment& job = *slot.task.environment;
  Round round = job.Start(arbitrator_.Open(job.Opening()));
  slot.tau = slot.task.tau(slot.task.environment->truth().held_out_loss);
  return round;
}

std::vector<Round> LearningRun::StepEnvironments(std::vector<WindowOutcome>& outcomes) {
  std::vector<Round> rounds(slots_.size());
  ParallelFor(options_.learning.jobs, options_.learning.threads, [&](int s) {
    Slot& slot = slots_[s];
    rounds[s] = slot.task.environment->Step(sizes_[s]);
    slot.sizes.push_back(sizes_[s]);
    outcomes[s] = OutcomeOf(slot.task, options_.learning.objective, slot.tau);
  });
  return rounds;
}

LearningRun::Step LearningRun::Advance() {
  const int jobs = options_.learning.jobs;
  Step step;
  if (sizes_.empty()) {  // the very first window of a fresh run; a restored one has its jobs
    if (slots_.front().task.environment == nullptr) {
      for (int s = 0; s < jobs; ++s) Begin(s);
      ParallelFor(jobs, options_.learning.threads,
                  [&](int s) { arbitrator_.Start(s, Open(slots_[s])); });
    }
    sizes_ = arbitrator_.Decide();
  }
  while (true) {
    std::vector<WindowOutcome> outcomes(jobs);
    const std::vector<Round> rounds = StepEnvironments(outcomes);
    arbitrator_.Close(rounds, outcomes);
    step.windows += jobs;
    std::vector<int> ended;
    for (int s = 0; s < jobs; ++s) {
      const bool reached = slots_[s].task.environment->truth().reached;
      (reached ? step.jobs_finished : step.jobs_missed) += outcomes[s].end != StepEnd::kContinues;
      if (outcomes[s].end == StepEnd::kContinues) continue;
      Begin(s);
      ended.push_back(s);
    }
    ParallelFor(static_cast<int>(ended.size()), options_.learning.threads,
                [&](int i) { arbitrator_.Start(ended[i], Open(slots_[ended[i]])); });
    const auto update = arbitrator_.Update(static_cast<double>(updates_) / options_.updates);
    if (update) {
      step.statistics = *update;
      step.mean_reward = arbitrator_.TakeMeanReward();
      ++updates_;
      sizes_.clear();  // decided anew by the next Advance, so that a checkpoint holds no open
                       // decision
      return step;
    }
    sizes_ = arbitrator_.Decide();
  }
}

// A checkpoint is a folder of its own, named by its update; the file `latest` names the newest
// complete one. The one before it stays, so a crash at any moment leaves a whole checkpoint.
Status LearningRun::Save(const std::string& folder) const {
  DYNAMIX_CHECK(sizes_.empty(), "Save between two updates");
  const fs::path parent = folder, own = parent / std::to_string(updates_);
  std::error_code failure;
  fs::create_directories(own, failure);
  if (failure) return Error{"cannot make " + own.string() + ": " + failure.message()};
  if (Status saved = learner_.Save((own / kLearnerFile).string()); !saved) return saved;

  nlohmann::json slots = nlohmann::json::array();
  for (const Slot& slot : slots_)
    slots.push_back({{"number", slot.number}, {"course", slot.course}, {"sizes", slot.sizes}});
  const nlohmann::json run = {
      {"updates", updates_}, {"seed", options_.seed}, {"rng", rng_.state()}, {"slots", slots}};
  if (Status saved = WriteBytes((own / kRunFile).string(), run.dump()); !saved) return saved;

  DYNAMIX_FAILPOINT("the checkpoint is whole, nobody names it");
  std::string previous;
  std::ifstream(parent / kLatestFile) >> previous;
  if (Status saved = WriteBytes((parent / kLatestFile).string(), std::to_string(updates_)); !saved)
    return saved;
  DYNAMIX_FAILPOINT("old checkpoints are still there");
  for (const auto& entry : fs::directory_iterator(parent, failure)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name != previous && name != std::to_string(updates_))
      fs::remove_all(entry.path(), failure);
  }
  return Nothing{};
}

Status LearningRun::Restore(const std::string& folder) {
  std::string latest;
  if (!(std::ifstream(fs::path(folder) / kLatestFile) >> latest))
    return Error{"no checkpoint in " + folder};
  const fs::path own = fs::path(folder) / latest;
  std::ifstream file(own / kRunFile);
  const nlohmann::json run = nlohmann::json::parse(file, nullptr, false);
  if (run.is_discarded()) return Error{(own / kRunFile).string() + " is missing or not JSON"};
  try {
    if (run.at("slots").size() != slots_.size() || run.at("seed") != options_.seed)
      return Error{(own / kRunFile).string() + " was written with another seed or number of jobs"};
    std::vector<Slot> slots(slots_.size());
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const auto& saved = run.at("slots")[s];
      slots[s].number = saved.at("number");
      slots[s].course = saved.at("course");
      slots[s].sizes = saved.at("sizes").get<std::vector<std::vector<int>>>();
    }
    const Rng rng(run.at("rng").get<Rng::State>());
    const int updates = run.at("updates");
    if (Status restored = learner_.Restore((own / kLearnerFile).string()); !restored)
      return restored;
    slots_ = std::move(slots);
    rng_ = rng;
    updates_ = updates;
  } catch (const nlohmann::json::exception& error) {
    return Error{(own / kRunFile).string() + " is damaged: " + error.what()};
  }
  ParallelFor(options_.learning.jobs, options_.learning.threads, [&](int s) { Replay(s); });
  return Nothing{};
}

void LearningRun::Replay(int index) {
  Slot& slot = slots_[index];
  arbitrator_.Start(index, Open(slot));
  for (const std::vector<int>& sizes : slot.sizes) {
    const Round round = slot.task.environment->Step(sizes);
    arbitrator_.Observe(index, round);
  }
  slot.tau = slot.task.tau(slot.task.environment->truth().held_out_loss);
}

}  // namespace dynamix
