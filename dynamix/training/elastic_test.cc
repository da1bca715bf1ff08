// Workers that lose ranks and take them in, as threads of one process. Real processes that are
// killed and stopped: elastic_ranks_test.py.
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/live_job.h"
#include "dynamix/training/testing/ranks_conformance.h"

namespace dynamix {
namespace {

struct Left {};  // thrown where a rank is lost

// What survivors ended with.
struct Outcome {
  std::vector<std::vector<float>> weights;  // of each
  std::vector<int> batches;
  std::vector<double> starts;  // by slot; 0: nobody has it
  std::int64_t samples = 0;
  std::map<std::int64_t, int> trained;  // position: how often
};

enum class Place { kForward, kReport };

class ElasticTest : public testing::TestWithParam<std::tuple<int, Place>> {
 protected:
  static constexpr int kIterations = 12;

  void SetUp() override {
    SetThreads(1);
    job_.start_batches = {5, 17, 4, 6};
    job_.options.window_iterations = 3;
    job_.options.optimizer = {.kind = OptimizerKind::kAdamW,
                              .learning_rate = 0.02,
                              .weight_decay = 0.1,
                              .base_batch = 32,
                              .rule = LearningRateRule::kAdaScale,
                              .planned_samples = 2000};
  }

  // One rank until its end, or until it is lost in iteration `at`.
  void RunRank(WorkerGroup& group, int lost, Place place, int at, Outcome& outcome) {
    const int slot = group.slot();
    Classifier classifier(job_.model, BatchReader(job_.data, {}, 1), 1 + slot);
    Trainable trainable = TrainableOf(classifier);
    std::vector<std::int64_t> positions;
    int iteration = 0;
    const auto leave = [&](Place here) {
      if (slot == lost && here == place && iteration == at) throw Left();
    };
    trainable.forward = [&, forward = trainable.forward](std::span<const Sample> samples,
                                                         PassSums& sums) {
      leave(Place::kForward);
      positions.clear();
      for (const Sample& sample : samples) positions.push_back(sample.position);
      return forward(samples, sums);
    };
    WorkerOptions options = job_.options;
    options.start_batch = job_.start_batches[slot];
    options.bounds.min = 1;
    options.measure = [&](Report&) { leave(Place::kReport); };
    auto worker = Worker::Start(group, trainable, options);
    ASSERT_TRUE(worker.ok()) << worker.error();
    for (; iteration < kIterations; ++iteration) {
      const Status done = worker.value()->Iterate();
      ASSERT_TRUE(done.ok()) << done.error();
      const std::lock_guard lock(mutex_);
      for (const std::int64_t position : positions) ++outcome.trained[position];
    }
    const Result<WorkerState> saved = worker.value()->Save();
    ASSERT_TRUE(saved.ok()) << saved.error();
    const std::lock_guard lock(mutex_);
    outcome.starts = saved.value().start_batches;
    outcome.weights.push_back(worker.value()->parameters().CopyValues());
    outcome.batches = worker.value()->batches();
    outcome.samples = worker.value()->samples_seen();
  }

  Outcome Run(int lost, Place place, int at) {
    Outcome outcome;
    auto groups = WorkerGroup::ConnectThreads(static_cast<int>(job_.start_batches.size()),
                                              {.timeout_s = 20, .elastic = true});
    std::vector<std::thread> threads;
    for (auto& group : groups)
      threads.emplace_back([&] {
        try {
          RunRank(*group, lost, place, at, outcome);
        } catch (const Left&) {
        }
        group.reset();  // its connections and its door close, as when a process ends
      });
    for (std::thread& thread : threads) thread.join();
    return outcome;
  }

  // The smaller team does iteration `at` from the start: all ranks up to it, then a job of the
  // survivors only, from that state.
  std::vector<float> Reference(int lost, int at, const std::vector<int>& batches) {
    std::vector<float> weights;
    WorkerState state;
    RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
      for (int i = 0; i < at; ++i) ASSERT_TRUE(worker.Iterate().ok());
      const auto saved = worker.Save();
      if (group.rank() == 0) state = saved.value();
    });
    for (auto* numbers : {&state.start_batches, &state.highest, &state.micro_batches})
      numbers->erase(numbers->begin() + lost);
    state.batches.assign(batches.begin(), batches.end());
    SampleJob smaller = job_;
    smaller.start_batches.erase(smaller.start_batches.begin() + lost);
    RunRanks(smaller, [&](Worker& worker, WorkerGroup& group, Advisor*) {
      worker.Restore(state);
      for (int i = at; i < kIterations; ++i) ASSERT_TRUE(worker.Iterate().ok());
      if (group.rank() == 0) weights = worker.parameters().CopyValues();
    });
    return weights;
  }

  SampleJob job_;
  std::mutex mutex_;
};

std::string NameOf(const testing::TestParamInfo<std::tuple<int, Place>>& info) {
  return "Rank" + std::to_string(std::get<0>(info.param)) +
         (std::get<1>(info.param) == Place::kForward ? "BeforeTheExchange" : "AfterTheStep");
}

INSTANTIATE_TEST_SUITE_P(Losses, ElasticTest,
                         testing::Combine(testing::Values(0, 1, 3),
                                          testing::Values(Place::kForward, Place::kReport)),
                         NameOf);

TEST_P(ElasticTest, ALostRankIsASmallerTeamThatTrainsTheSameSamplesOnce) {
  const auto [lost, place] = GetParam();
  const int at = 5;  // the last of a window
  Outcome outcome = Run(lost, place, at);
  ASSERT_EQ(outcome.weights.size(), 3u);
  EXPECT_EQ(outcome.weights[1], outcome.weights[0]);
  EXPECT_EQ(outcome.weights[2], outcome.weights[0]);
  // The global batch of 32 stays, and is still what the job started with.
  const int global = std::accumulate(outcome.batches.begin(), outcome.batches.end(), 0);
  EXPECT_EQ(global, 32);
  std::erase(outcome.starts, 0);
  EXPECT_THAT(outcome.starts, testing::ElementsAreArray(outcome.batches));
  // Lost after the step, the iteration counts; lost before it, the others do it.
  const int by_all = place == Place::kForward ? at : at + 1;
  EXPECT_EQ(outcome.samples, by_all * 32 + (kIterations - by_all) * global);
  EXPECT_EQ(outcome.weights[0], Reference(lost, by_all, outcome.batches));
  // What the lost rank trained while it lived is not in the survivors' book after its last report.
  for (std::int64_t position = by_all * 32; position < outcome.samples; ++position) {
    const auto found = outcome.trained.find(position);
    ASSERT_NE(found, outcome.trained.end()) << position;
    EXPECT_EQ(found->second, 1) << position;
  }
  EXPECT_EQ(outcome.trained.rbegin()->first, outcome.samples - 1);
}

TEST_F(ElasticTest, WithoutLossAnElasticGroupTrainsTheSameBits) {
  const Outcome elastic = Run(-1, Place::kForward, 0);
  EXPECT_EQ(elastic.weights[0], Train(job_, kIterations));
}

TEST_F(ElasticTest, OneRankAloneIsLeftAndGoesOn) {
  job_.start_batches = {5, 7};
  for (const int lost : {0, 1}) {
    const Outcome outcome = Run(lost, Place::kForward, 5);
    ASSERT_EQ(outcome.weights.size(), 1u);
    EXPECT_THAT(outcome.batches, testing::ElementsAre(12));
    EXPECT_EQ(outcome.samples, kIterations * 12);
    EXPECT_EQ(outcome.weights[0], Reference(lost, 5, outcome.batches));
  }
}

}  // namespace
}  // namespace dynamix
