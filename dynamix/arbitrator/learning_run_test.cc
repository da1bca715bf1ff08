#include "dynamix/arbitrator/learning_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/ppo/learned_policy.h"

namespace dynamix {
namespace {

constexpr double kCritical = 600;

// Reference: constant global batch of 96 samples in 40 + 16 ms, loss 1 to 0.5.
LearningTask MakeFakeTask(std::int64_t number, std::uint64_t) {
  const double loss_per_s = 96 / 0.056 / 1e6;
  LearningTask task;
  task.environment = std::make_unique<FakeJob>(2 + static_cast<int>(number % 3), kCritical, 400);
  task.tau = [loss_per_s](double loss) { return (1 - std::max(loss, 0.5)) / loss_per_s; };
  task.reference_seconds = 0.5 / loss_per_s;
  return task;
}

// A problem that is solved in seconds: steps that change the batch at once, judged by the near
// future.
LearningRunOptions SmallRun(int updates) {
  LearningRunOptions options;
  options.learning.actions = {.kind = ActionKind::kWide};
  options.learning.objective = {
      .reward = {.stability = 0.02}, .team_discount = 0.96, .units_per_run = 50, .missed_cost = 1};
  options.team_ppo = options.local_ppo = {};
  options.learning.jobs = 16;
  options.learning.max_workers = 4;
  options.learning.threads = 2;
  options.team_ppo.steps = options.local_ppo.steps = 32;
  options.team_ppo.learning_rate = options.local_ppo.learning_rate = 2e-3;
  options.hidden = {32};
  options.updates = updates;
  options.tasks = 8;
  return options;
}

std::vector<float> Weights(LearningRun& run) {
  std::vector<float> all;
  for (Agent* agent : {run.learner().team(), run.learner().local()}) {
    const auto parameters = agent->model().network.parameters();
    all.insert(all.end(), parameters.begin(), parameters.end());
  }
  return all;
}

class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() /
            ("learning_run_test_" + std::to_string(::getpid()) + "_" + std::to_string(counter_++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  static inline int counter_ = 0;
  std::filesystem::path path_;
};

TEST(LearningRunTest, LearnsToGrowTheGlobalBatchAndToBalance) {
  LearningRun run(SmallRun(40), MakeFakeTask);
  TeamReward first, last;
  while (!run.Done()) {
    const LearningRun::Step step = run.Advance();
    if (run.updates() == 1) first = step.mean_reward;
    last = step.mean_reward;
  }
  EXPECT_GT(last.quality, first.quality + 0.3);
  EXPECT_GT(last.efficiency, first.efficiency) << "less waiting";

  // Greedy, frozen, on more workers than it learned with.
  const LearningOptions& learned = run.options().learning;
  const PolicyModel model = run.learner().Model(learned.actions, learned.objective, {});
  FakeJob job(8, kCritical, 400);
  Arbitrator arbitrator({"learned", model.actions, [&model] {
                           return std::make_unique<LearnedPolicy>(model, Choice::kGreedy);
                         }});
  Round round = job.Reset();
  while (!job.truth().reached && !job.truth().out_of_time)
    round = job.Step(arbitrator.Step(round, {}).sizes);
  EXPECT_TRUE(job.truth().reached);
  EXPECT_GT(round.GlobalBatch(), 300);
}

TEST(LearningRunTest, IsReproducibleAndIndependentOfTheNumberOfThreads) {
  LearningRunOptions options = SmallRun(3);
  LearningRun a(options, MakeFakeTask);
  options.learning.threads = 1;
  LearningRun b(options, MakeFakeTask);
  options.seed = 2;
  LearningRun c(options, MakeFakeTask);
  for (LearningRun* run : {&a, &b, &c})
    while (!run->Done()) run->Advance();
  EXPECT_EQ(Weights(a), Weights(b));
  EXPECT_NE(Weights(a), Weights(c));
}

TEST(LearningRunTest, ResumesExactly) {
  const Folder folder;
  LearningRun whole(SmallRun(6), MakeFakeTask);
  while (!whole.Done()) whole.Advance();

  LearningRun first(SmallRun(6), MakeFakeTask);
  for (int i = 0; i < 3; ++i) {
    first.Advance();
    ASSERT_TRUE(first.Save(folder.path()).ok());
  }
  LearningRun second(SmallRun(6), MakeFakeTask);
  const Status restored = second.Restore(folder.path());
  ASSERT_TRUE(restored.ok()) << restored.error();
  EXPECT_EQ(second.updates(), 3);
  while (!second.Done()) second.Advance();
  EXPECT_EQ(Weights(whole), Weights(second));
}

TEST(LearningRunTest, RefusesWhatItCannotContinue) {
  const Folder folder;
  LearningRun fresh(SmallRun(2), MakeFakeTask);
  EXPECT_NE(fresh.Restore(folder.path()).error().find("no checkpoint"), std::string::npos);
  fresh.Advance();
  ASSERT_TRUE(fresh.Save(folder.path()).ok());

  LearningRunOptions other = SmallRun(2);
  other.seed = 9;
  EXPECT_NE(LearningRun(other, MakeFakeTask).Restore(folder.path()).error().find("another seed"),
            std::string::npos);

  std::ofstream(folder.path() + "/1/run.json") << "{\"updates\": 1";
  EXPECT_NE(LearningRun(SmallRun(2), MakeFakeTask).Restore(folder.path()).error().find("not JSON"),
            std::string::npos);
}

TEST(LearningRunTest, KeepsTheTwoNewestCheckpoints) {
  const Folder folder;
  LearningRun run(SmallRun(4), MakeFakeTask);
  while (!run.Done()) {
    run.Advance();
    ASSERT_TRUE(run.Save(folder.path()).ok());
  }
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    folders += entry.is_directory() ? 1 : 0;
  EXPECT_EQ(folders, 2);
}

}  // namespace
}  // namespace dynamix
