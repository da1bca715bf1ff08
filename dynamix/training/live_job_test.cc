#include "dynamix/training/live_job.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <future>
#include <mutex>

#include "dynamix/core/input_error.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/testing/ranks_conformance.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

class LiveJobTest : public testing::Test {
 protected:
  void SetUp() override {
    SetThreads(1);
    folder_ = fs::temp_directory_path() / ("dynamix_live_job_" + std::to_string(getpid()));
    job_.start_batches = {6, 10};
    job_.options.window_iterations = 5;
    job_.options.optimizer = {.learning_rate = 0.02,
                              .base_batch = 16,
                              .rule = LearningRateRule::kAdaScale,
                              .planned_samples = 3000};
    options_ = {.name = "test",
                .target_accuracy = 0.6,
                .evaluate_windows = 2,
                .checkpoint_windows = 3,
                .folder = folder_};
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Outcome {
    std::vector<float> weights;
    LiveJobState state;
    std::vector<int> batches;
    int decisions = 0;
  };

  // Runs, resuming when asked to, until the job's end or until `stop_after` iterations.
  Outcome Run(bool resume, int stop_after = 1 << 30) {
    Outcome outcome;
    const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] { RunRank(*groups[rank], resume, stop_after, outcome); });
    for (std::thread& thread : threads) thread.join();
    return outcome;
  }

  // A rank without advice, not started yet.
  struct Rank {
    Rank(const LiveJobTest& test, WorkerGroup& group, const LiveJobOptions& live)
        : classifier(test.job_.model, BatchReader(test.job_.data, {}, 1), 1),
          worker(
              std::move(Worker::Start(group, TrainableOf(classifier), test.job_.options)).value()),
          job(group, *worker, classifier, nullptr, live) {}

    Classifier classifier;
    std::unique_ptr<Worker> worker;
    LiveJob job;
  };

  void RunRank(WorkerGroup& group, bool resume, int stop_after, Outcome& outcome) {
    Classifier classifier(job_.model, BatchReader(job_.data, {}, 1), 1);
    // Depends on all rounds so far, but not on their times.
    int seen = 0;
    InProcessAdvisor advisor(
        group, SettingsOf(job_.options.optimizer),
        [&seen](const Round& round) {
          seen += static_cast<int>(round.index) + 1;
          return std::vector<int>{4 + seen % 7, 9};
        },
        [&outcome](const Round&, const std::vector<int>&) { ++outcome.decisions; },
        [&seen](Memory& memory) { memory(seen); });
    WorkerOptions options = job_.options;
    options.start_batch = job_.start_batches[group.rank()];
    options.bounds.min = 1;
    auto started = Worker::Start(group, TrainableOf(classifier), options, &advisor);
    ASSERT_TRUE(started.ok());
    Worker& worker = *started.value();
    LiveJobOptions live = options_;
    live.resume = resume;
    LiveJob job(group, worker, classifier, &advisor, live);
    ASSERT_TRUE(job.Start().ok());
    const Status done =
        job.Run([&] { return group.rank() == 1 && worker.iterations() + 1 >= stop_after; });
    ASSERT_TRUE(done.ok()) << done.error();
    if (group.rank() != 0) return;
    outcome.weights = worker.parameters().CopyValues();
    outcome.state = job.state();
    outcome.batches = worker.batches();
  }

  fs::path folder_;
  SampleJob job_;
  LiveJobOptions options_;
};

TEST_F(LiveJobTest, TrainsToTheEndAndReachesItsTarget) {
  const Outcome outcome = Run(false);
  EXPECT_GE(outcome.state.samples, 3000);
  EXPECT_TRUE(outcome.state.reached);
  EXPECT_GT(outcome.state.accuracy, 0.6);
  EXPECT_GT(outcome.state.time_to_target_s, 0);
  EXPECT_LE(outcome.state.time_to_target_s, outcome.state.seconds);
  EXPECT_FALSE(outcome.state.stopped);
}

// Stopped inside a window, right after one (advice given but not taken) and just before one.
TEST_F(LiveJobTest, AStoppedJobResumesBitIdentically) {
  options_.folder = folder_ / "through";
  const Outcome through = Run(false);
  for (const int stop_after : {17, 5, 6, 10, 40}) {
    options_.folder = folder_ / std::to_string(stop_after);
    const Outcome first = Run(false, stop_after);
    EXPECT_TRUE(first.state.stopped);
    const Outcome rest = Run(true);
    EXPECT_EQ(first.decisions + rest.decisions, through.decisions) << stop_after;
    EXPECT_EQ(rest.weights, through.weights) << stop_after;
    EXPECT_EQ(rest.batches, through.batches) << stop_after;
    EXPECT_GE(rest.state.samples, 3000);
    EXPECT_GT(rest.state.seconds, first.state.seconds);
  }
}

TEST_F(LiveJobTest, ACheckpointOfAnotherJobIsRefused) {
  Run(false, 7);
  options_.resume = true;
  options_.name = "another";
  const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20});
  const auto start = [&](int rank) { (void)Rank(*this, *groups[rank], options_).job.Start(); };
  std::future<void> other = std::async(std::launch::async, start, 1);
  EXPECT_THAT([&] { start(0); },
              testing::ThrowsMessage<InputError>(testing::HasSubstr("this job is `another`")));
  EXPECT_THROW(other.get(), InputError);
}

TEST_F(LiveJobTest, ACheckpointOfTwoRanksIsResumedByOneWithTheirGlobalBatch) {
  const Outcome two = Run(false, 7);
  WorkerGroup alone;
  options_.resume = true;
  job_.options.bounds.min = 1;
  Rank one(*this, alone, options_);
  ASSERT_TRUE(one.job.Start().ok());
  EXPECT_EQ(one.worker->samples_seen(), two.state.samples);
  EXPECT_EQ(one.worker->parameters().CopyValues(), two.weights);
  EXPECT_THAT(one.worker->batches(), testing::ElementsAre(two.batches[0] + two.batches[1]));
  ASSERT_TRUE(one.job.Run([] { return false; }).ok());
  EXPECT_GE(one.job.state().samples, 3000);
}

TEST_F(LiveJobTest, AJobThatIsTrainedOtherwiseIsResumedOnlyWhenThatIsAllowed) {
  options_.settings = {"optimizer.rule = none", "optimizer.momentum = 0.9", "old = 1"};
  WorkerGroup alone;
  Rank rank(*this, alone, options_);
  ASSERT_TRUE(rank.job.Start().ok());
  ASSERT_TRUE(rank.job.Run([] { return true; }).ok());
  options_.resume = true;
  options_.settings = {"optimizer.rule = sqrt", "optimizer.momentum = 0.9", "new = 1"};
  EXPECT_THAT([&] { (void)Rank(*this, alone, options_).job.Start(); },
              testing::ThrowsMessage<InputError>(testing::AllOf(
                  testing::HasSubstr("optimizer.rule = sqrt (the checkpoint has none)"),
                  testing::Not(testing::HasSubstr("momentum")))));
  options_.allow_changed = true;
  EXPECT_TRUE(Rank(*this, alone, options_).job.Start().ok());
  options_.allow_changed = false;
  options_.settings[0] = "optimizer.rule = none";
  EXPECT_TRUE(Rank(*this, alone, options_).job.Start().ok());
}

TEST_F(LiveJobTest, ANewRunIsNeverResumedFromTheOneItReplaces) {
  Run(false);
  ASSERT_TRUE(HasCheckpoint(folder_));
  WorkerGroup alone;
  ASSERT_TRUE(Rank(*this, alone, options_).job.Start().ok());
  EXPECT_FALSE(HasCheckpoint(folder_));
}

// As when the ranks' machines share no storage.
TEST_F(LiveJobTest, RanksThatSeeDifferentCheckpointsAreRefused) {
  Run(false, 7);
  options_.resume = true;
  LiveJobOptions elsewhere = options_;
  elsewhere.folder = folder_ / "elsewhere";
  const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20});
  const auto error = [&](int rank, const LiveJobOptions& live) {
    const Status started = Rank(*this, *groups[rank], live).job.Start();
    return started ? std::string() : started.error();
  };
  std::future<std::string> other = std::async(std::launch::async, error, 1, elsewhere);
  EXPECT_THAT(error(0, options_), testing::HasSubstr("all ranks need the same folder"));
  EXPECT_THAT(other.get(), testing::HasSubstr("all ranks need the same folder"));
}

TEST_F(LiveJobTest, ACheckpointThatCannotBeWrittenStopsNobodyBeforeTheEnd) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  options_.folder = folder_ / "run";
  WorkerGroup alone;
  Rank rank(*this, alone, options_);
  ASSERT_TRUE(rank.job.Start().ok());
  const Status done = rank.job.Run([] { return false; });
  EXPECT_GE(rank.job.state().samples, 3000);
  EXPECT_THAT(rank.job.state().warning, testing::HasSubstr("Not a directory"));
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error(), testing::HasSubstr("Not a directory"));
}

TEST_F(LiveJobTest, ElasticRanksEndAlikeWhenTheLastCheckpointCannotBeWritten) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  options_.folder = folder_ / "run";
  const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20, .elastic = true});
  const auto error = [&](int rank) {
    Rank own(*this, *groups[rank], options_);
    EXPECT_TRUE(own.job.Start().ok());
    const Status done = own.job.Run([] { return false; });
    return done ? std::string() : done.error();
  };
  std::future<std::string> other = std::async(std::launch::async, error, 1);
  EXPECT_THAT(error(0), testing::HasSubstr("Not a directory"));
  EXPECT_EQ(other.get(), "the first rank could not write the last checkpoint");
}

TEST_F(LiveJobTest, TrainingDoesNotWaitForTheDisk) {
  WorkerGroup alone;
  Rank rank(*this, alone, options_);
  ASSERT_TRUE(rank.job.Start().ok());
  // Whoever looks whether the checkpoint before is whole waits until somebody opens the other end.
  fs::create_directories(folder_);
  const std::string blocked = folder_ / "checkpoint.bin";
  ASSERT_EQ(mkfifo(blocked.c_str(), 0600), 0);
  std::string warning;
  std::future<void> disk;
  const Status done = rank.job.Run([] { return false; },
                                   [&] {
                                     if (rank.worker->windows() != 9) return;
                                     warning = rank.job.state().warning;
                                     disk = std::async(std::launch::async, [&] {
                                       const FileDescriptor end(open(blocked.c_str(), O_WRONLY));
                                     });
                                   });
  EXPECT_THAT(warning, testing::HasSubstr("a checkpoint is left out"));
  EXPECT_TRUE(done.ok()) << done.error();
  EXPECT_TRUE(LoadCheckpoint(folder_).ok());
}

class CheckpointTest : public LiveJobTest {};

TEST_F(CheckpointTest, RoundTripsExactly) {
  Checkpoint checkpoint;
  checkpoint.job = "job \"x\"";
  checkpoint.seconds = 1.0 / 3;
  checkpoint.worker.cursor = 1234567890123;
  checkpoint.worker.schedule_position = 2.0 / 3;
  checkpoint.worker.batches = {1, 2};
  checkpoint.worker.start_batches = checkpoint.worker.highest =
      checkpoint.worker.micro_batches = {3, 4};
  checkpoint.worker.parameters = {0.1f, -0.2f};
  checkpoint.worker.optimizer = {{1.5f}, {2.5f}};
  checkpoint.worker.buffers = {{3.5f, 4.5f}};
  checkpoint.advisor = std::string("a\0b", 3);
  ASSERT_TRUE(SaveCheckpoint(folder_, checkpoint).ok());
  const auto loaded = LoadCheckpoint(folder_);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(loaded.value().job, checkpoint.job);
  EXPECT_EQ(loaded.value().seconds, checkpoint.seconds);
  EXPECT_EQ(loaded.value().worker.cursor, checkpoint.worker.cursor);
  EXPECT_EQ(loaded.value().worker.schedule_position, checkpoint.worker.schedule_position);
  EXPECT_EQ(loaded.value().worker.optimizer, checkpoint.worker.optimizer);
  EXPECT_EQ(loaded.value().worker.buffers, checkpoint.worker.buffers);
  EXPECT_EQ(loaded.value().advisor, checkpoint.advisor);
}

// Files from before schedules had clocks have no position: its name is made another one here.
TEST_F(CheckpointTest, AnOlderFileIsOfAScheduleBySamples) {
  Checkpoint checkpoint;
  checkpoint.worker.cursor = 640;
  checkpoint.worker.schedule_position = 80;
  std::string bytes = EncodeCheckpoint(checkpoint);
  bytes.replace(bytes.find("schedule_position"), 8, "forgotte");
  const std::size_t body = bytes.size() - sizeof(std::uint32_t);
  const auto checksum =
      static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), body));
  bytes.replace(body, sizeof checksum, reinterpret_cast<const char*>(&checksum), sizeof checksum);
  const auto read = DecodeCheckpoint(bytes);
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read.value().worker.schedule_position, 640);
  EXPECT_THAT(read.value().settings, testing::ElementsAre("workload.optimizer.clock = 'samples'"));
}

TEST_F(CheckpointTest, ADamagedFileFallsBackToTheOneBefore) {
  Checkpoint checkpoint;
  checkpoint.job = "first";
  ASSERT_TRUE(SaveCheckpoint(folder_, checkpoint).ok());
  checkpoint.job = "second";
  ASSERT_TRUE(SaveCheckpoint(folder_, checkpoint).ok());
  EXPECT_EQ(LoadCheckpoint(folder_).value().job, "second");
  EXPECT_EQ(LoadCheckpoint(folder_).value().refused, "");
  std::fstream(folder_ / "checkpoint.bin", std::ios::in | std::ios::out).seekp(20).put('!');
  EXPECT_EQ(LoadCheckpoint(folder_).value().job, "first");
  EXPECT_THAT(LoadCheckpoint(folder_).value().refused, testing::HasSubstr("checksum"));
  std::ofstream(folder_ / "checkpoint.bin.previous") << "DYNAMIX1";
  const auto refused = LoadCheckpoint(folder_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), testing::HasSubstr("checksum"));
}

TEST_F(CheckpointTest, AFolderInItsPlaceFallsBackToTheOneBefore) {
  Checkpoint checkpoint;
  checkpoint.job = "first";
  ASSERT_TRUE(SaveCheckpoint(folder_, checkpoint).ok());
  fs::rename(folder_ / "checkpoint.bin", folder_ / "checkpoint.bin.previous");
  fs::create_directory(folder_ / "checkpoint.bin");
  const auto read = LoadCheckpoint(folder_);
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read.value().job, "first");
  EXPECT_THAT(read.value().refused, testing::HasSubstr("not a regular file"));
}

TEST_F(CheckpointTest, WhatAKilledProcessLeftOfOneIsRemovedByTheNext) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "checkpoint.bin.writing.1") << "DYNAM";
  ASSERT_TRUE(SaveCheckpoint(folder_, {}).ok());
  ASSERT_TRUE(SaveCheckpoint(folder_, {}).ok());
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder_))
    names.push_back(file.path().filename().string());
  EXPECT_THAT(names, testing::UnorderedElementsAre("checkpoint.bin", "checkpoint.bin.previous"));
}

// Ranks measure their own time; were each to end by its own, the other would wait for it in vain.
TEST_F(LiveJobTest, AJobThatIsOutOfTimeEndsOnAllRanksWithTheSameWindow) {
  job_.options.optimizer.planned_samples = 1e9;
  options_.most_seconds = 0.05;
  const Outcome outcome = Run(false);
  EXPECT_GE(outcome.state.seconds, 0.05);
  EXPECT_FALSE(outcome.state.stopped);
  EXPECT_GE(outcome.decisions, 1);
}

}  // namespace
}  // namespace dynamix
