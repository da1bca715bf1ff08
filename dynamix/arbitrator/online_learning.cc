#include "dynamix/arbitrator/online_learning.h"

#include <filesystem>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

std::vector<int> Batches(const Round& round) {
  std::vector<int> batches;
  for (const RoundEntry& entry : round.entries) batches.push_back(entry.batch);
  return batches;
}

OnlineLearningOptions ForJob(OnlineLearningOptions options, const PolicyModel& model, int workers) {
  options.learning.actions = model.actions;
  options.learning.jobs = 1;
  options.learning.max_workers = workers;
  options.learning.threads = 1;
  options.learning.Validate();
  options.team_ppo.Validate();
  options.local_ppo.Validate();
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
    : options_(ForJob(options, start, workers)),
      learner_(MakeLearnerOptions(options_.learning, options_.team_ppo, options_.local_ppo,
                                  HiddenOf(start), options_.seed)),
      arbitrator_(options_.learning, learner_) {
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

std::vector<int> OnlineLearner::Step(const Round& round, const OnlineWindow& window) {
  if (updating_) return Batches(round);
  if (thread_.joinable()) FinishUpdate();
  if (open_) {
    open_ = false;
    arbitrator_.Close({round}, {{.progress_seconds = window.progress_seconds,
                                 .time_scale_s = window.time_scale_s}});
    if (learner_.Full()) {
      updating_ = true;
      thread_ = std::thread([this] { Update(); });
      return Batches(round);
    }
  } else if (!started_) {
    arbitrator_.Start(0, round);
    started_ = true;
  } else {
    arbitrator_.Observe(0, round);
  }
  if (!window.advise) return Batches(round);
  open_ = true;
  return std::move(arbitrator_.Decide().front());
}

void OnlineLearner::Update() {
  try {
    arbitrator_.Update(0);
    ++updates_;
    if (!options_.folder.empty()) {
      fs::create_directories(options_.folder);
      const fs::path folder = options_.folder;
      Status saved = learner_.Save((folder / kLearnerFile).string());
      if (saved)
        saved = SavePolicy((folder / kPolicyFile).string(),
                           learner_.Model(options_.learning.actions,
                                          {{"online_updates", std::to_string(updates_.load())}}));
      thread_note_ = saved ? "" : saved.error();
    }
  } catch (const std::exception& error) {
    thread_note_ = error.what();
  }
  updating_ = false;
}

void OnlineLearner::FinishUpdate() {
  thread_.join();
  note_ = std::move(thread_note_);
  thread_note_.clear();
}

}  // namespace dynamix
