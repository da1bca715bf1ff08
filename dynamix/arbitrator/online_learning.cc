#include "dynamix/arbitrator/online_learning.h"

#include <filesystem>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

LearningOptions ForJob(const PolicyModel& model, int workers) {
  LearningOptions options;
  options.actions = model.actions;
  options.objective = model.objective;
  options.jobs = options.threads = 1;
  options.max_workers = workers;
  options.Validate();
  return options;
}

std::vector<int> HiddenOf(const PolicyModel& model) {
  const auto& head = model.team ? model.team : model.local;
  if (!head) throw InputError("the policy to learn from has no head");
  return head->network.shape().hidden;
}

}  // namespace

OnlineLearningOptions::OnlineLearningOptions() {
  for (PpoOptions* ppo : {&team_ppo, &local_ppo}) {
    ppo->steps = 32;
    ppo->epochs = 4;
    ppo->minibatches = 2;
    ppo->learning_rate = 3e-4;
    ppo->target_kl = 0.02;
    ppo->entropy_coefficient = ppo->final_entropy_coefficient = 1e-3;
  }
}

OnlineLearner::OnlineLearner(const PolicyModel& start, int workers,
                             const OnlineLearningOptions& options)
    : options_(options),
      learning_(ForJob(start, workers)),
      learner_(MakeLearnerOptions(learning_, options_.team_ppo, options_.local_ppo, HiddenOf(start),
                                  options_.seed)) {
  Restore(start);
}

OnlineLearner::~OnlineLearner() {
  if (thread_.joinable()) thread_.join();
}

void OnlineLearner::Restore(const PolicyModel& start) {
  if (Status adopted = learner_.Adopt(start); !adopted) throw InputError(adopted.error());
  if (options_.folder.empty()) return;
  const std::string path = (fs::path(options_.folder) / kLearnerFile).string();
  for (const std::string& candidate : {path, PreviousGeneration(path)}) {
    std::error_code ignored;
    if (!fs::exists(candidate, ignored)) continue;
    const Status restored = learner_.Restore(candidate);
    if (restored) {
      const Agent* head = learner_.team() ? learner_.team() : learner_.local();
      updates_ = static_cast<int>(head->updates());
      note_ += "learning goes on after update " + std::to_string(updates_);
      return;
    }
    note_ += candidate + ": " + restored.error() + "; ";
  }
}

bool OnlineLearner::busy() {
  if (updating_) return true;
  if (thread_.joinable()) {
    thread_.join();
    note_ = std::move(thread_note_);
    thread_note_.clear();
  }
  return false;
}

void OnlineLearner::StartUpdate(const Observation& local_next, const Observation& team_next) {
  updating_ = true;
  try {
    thread_ = std::thread([this, local_next, team_next] { Update(local_next, team_next); });
  } catch (...) {  // no more threads: the next round tries again
    updating_ = false;
    throw;
  }
}

void OnlineLearner::Update(const Observation& local_next, const Observation& team_next) {
  try {
    learner_.Update(local_next, team_next, 0);
    ++updates_;
    if (!options_.folder.empty()) {
      fs::create_directories(options_.folder);
      const fs::path folder = options_.folder;
      Status saved = learner_.Save((folder / kLearnerFile).string());
      if (saved)
        saved = SavePolicy((folder / kPolicyFile).string(),
                           learner_.Model(learning_.actions, learning_.objective,
                                          {{"online_updates", std::to_string(updates_.load())}}));
      thread_note_ = saved ? "" : saved.error();
    }
  } catch (const std::exception& error) {
    thread_note_ = error.what();
  }
  updating_ = false;
}

}  // namespace dynamix
