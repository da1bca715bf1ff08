// A process is killed at every place between the steps that must look like one (host/failpoint.h),
// once at each. Whatever the place, what was there before is there, or what was to be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "dynamix/arbitrator/learning_run.h"
#include "dynamix/arbitrator/testing/fake_job.h"
#include "dynamix/cli/epoch_file.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/host/failpoint.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/record/run_record.h"
#include "dynamix/training/checkpoint.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

int g_places_left = 0;  // until the process dies; 0: it does not

}  // namespace

void Failpoint(const char*) {
  if (--g_places_left == 0) raise(SIGKILL);
}

namespace {

class FailpointsTest : public testing::Test {
 protected:
  FailpointsTest()
      : folder_(fs::path(testing::TempDir()) / ("failpoints_" + std::to_string(getpid()))) {}
  ~FailpointsTest() override { fs::remove_all(folder_); }

  // Runs `action` in a process that dies at its first place, in one that dies at its second, and so
  // on until one ends by itself; each on a folder that `prepare` made, which `check` then looks at.
  // Returns the number of places.
  int KillAtEveryPlace(const std::function<void()>& prepare, const std::function<void()>& action,
                       const std::function<void(bool finished)>& check) {
    for (int place = 1;; ++place) {
      SCOPED_TRACE("killed at place " + std::to_string(place));
      fs::remove_all(folder_);
      prepare();
      const pid_t child = fork();
      if (child == 0) {
        g_places_left = place;
        action();
        _exit(0);
      }
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      const bool finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      EXPECT_TRUE(finished || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) << status;
      check(finished);
      if (finished || HasFailure()) return place - 1;
    }
  }

  const fs::path folder_;
};

Checkpoint CheckpointAt(std::int64_t windows) {
  Checkpoint checkpoint;
  checkpoint.job = "job";
  checkpoint.worker.windows = windows;
  for (auto* numbers : {&checkpoint.worker.batches, &checkpoint.worker.start_batches,
                        &checkpoint.worker.highest, &checkpoint.worker.micro_batches})
    *numbers = {8, 8};
  checkpoint.worker.parameters.assign(1000, static_cast<float>(windows));
  return checkpoint;
}

TEST_F(FailpointsTest, ACheckpointIsTheOldOneOrTheNewOne) {
  const int places = KillAtEveryPlace(
      [&] {
        for (const int windows : {1, 2})
          ASSERT_TRUE(SaveCheckpoint(folder_, CheckpointAt(windows)));
      },
      [&] { (void)SaveCheckpoint(folder_, CheckpointAt(3)); },
      [&](bool finished) {
        const Result<Checkpoint> loaded = LoadCheckpoint(folder_);
        ASSERT_TRUE(loaded.ok()) << loaded.error();
        const WorkerState& worker = loaded.value().worker;
        EXPECT_TRUE(worker.windows == 3 || (!finished && worker.windows == 2)) << worker.windows;
        EXPECT_EQ(worker.parameters.front(), static_cast<float>(worker.windows));
        EXPECT_EQ(loaded.value().refused, "") << "no half file ever has the name of a checkpoint";
        // The job goes on and saves again.
        ASSERT_TRUE(SaveCheckpoint(folder_, CheckpointAt(4)));
        EXPECT_EQ(LoadCheckpoint(folder_).value().worker.windows, 4);
        for (const auto& file : fs::directory_iterator(folder_))
          EXPECT_EQ(file.path().string().find(".writing"), std::string::npos) << file;
      });
  EXPECT_GE(places, 6);
}

LearningRun SmallRun() {
  LearningRunOptions options;
  options.learning.jobs = options.learning.max_workers = 2;
  options.learning.threads = 1;
  options.team_ppo.steps = options.local_ppo.steps = 8;
  options.team_ppo.minibatches = options.local_ppo.minibatches = 1;
  options.hidden = {4};
  options.updates = 10;
  options.tasks = 2;
  return {options, [](std::int64_t, std::uint64_t) {
            LearningTask task;
            task.environment = std::make_unique<FakeJob>(2, 600, 400);
            task.tau = [](double loss) { return 1 - loss; };
            return task;
          }};
}

TEST_F(FailpointsTest, ALearnerGoesOnFromTheUpdateItSavedOrTheOneBefore) {
  const auto learn_on = [&](int updates) {
    LearningRun run = SmallRun();
    if (fs::exists(folder_)) (void)run.Restore(folder_.string());
    while (run.updates() < updates) {
      run.Advance();
      (void)run.Save(folder_.string());
    }
  };
  const int places = KillAtEveryPlace(
      [&] { learn_on(2); }, [&] { learn_on(3); },
      [&](bool finished) {
        LearningRun run = SmallRun();
        const Status restored = run.Restore(folder_.string());
        ASSERT_TRUE(restored.ok()) << restored.error();
        EXPECT_TRUE(run.updates() == 3 || (!finished && run.updates() == 2)) << run.updates();
        run.Advance();
        EXPECT_TRUE(run.Save(folder_.string()));
      });
  EXPECT_GE(places, 12) << "three files and two steps between them";
}

TEST_F(FailpointsTest, NoEpochIsServedTwiceAlthoughTheClockStands) {
  const std::chrono::system_clock::time_point now{std::chrono::milliseconds(100)};
  const fs::path served = folder_ / "served";
  const int places =
      KillAtEveryPlace([&] { EXPECT_EQ(NextEpoch(folder_.string(), now), 100u); },
                       [&] { std::ofstream(served) << NextEpoch(folder_.string(), now); },
                       [&](bool finished) {
                         std::uint64_t last = 100;
                         std::ifstream(served) >> last;
                         EXPECT_TRUE(!finished || last == 101u) << last;
                         const std::uint64_t next = NextEpoch(folder_.string(), now);
                         EXPECT_GT(next, last);
                         EXPECT_LE(next, 102u);
                       });
  EXPECT_GE(places, 5);
}

TEST_F(FailpointsTest, ARunHasAWholeSummaryOrNone) {
  RunConfig settings;
  settings.job.workload.target.accuracy = 0.9;
  const std::string config = FormatRunConfig(settings);
  const auto line = [](int index) {
    Rng rng(1);
    Round round = SampleRound(rng, 2);
    round.index = index;
    Decision decision;
    decision.sizes = Batches(round);
    decision.decisions = Sizes{};
    return RoundJson(round, decision, Truth{});
  };
  const int places = KillAtEveryPlace(
      [&] {
        RunFolder run(folder_, config);
        for (int i = 0; i < 3; ++i) run.AddRound(line(i));
      },
      [&] {
        RunFolder run(folder_, config, 3);
        run.Finish({{"accuracy", 0.5}});
      },
      [&](bool finished) {
        const RunRecord run = LoadRun(folder_);  // throws on a summary that is not whole
        EXPECT_EQ(run.rounds.size(), 3u);
        EXPECT_EQ(fs::exists(folder_ / "summary.json"), run.accuracy == 0.5);
        EXPECT_TRUE(!finished || run.accuracy == 0.5);
      });
  EXPECT_GE(places, 8);
}

}  // namespace
}  // namespace dynamix
