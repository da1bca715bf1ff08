#include "dynamix/training/worker.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <string>

#include "dynamix/core/input_error.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/testing/ranks_conformance.h"

namespace dynamix {
namespace {

// What a hostile or broken advisor might say: its own batch each time, or nothing, or nothing yet.
class ScriptedAdvisor : public Advisor {
 public:
  using Script = std::function<Answer(std::int64_t window)>;
  explicit ScriptedAdvisor(Script script, std::optional<int> opening = std::nullopt)
      : script_(std::move(script)), opening_(opening) {}
  Result<std::optional<int>> Open(const RoundEntry&, double) override { return opening_; }
  Status Submit(std::int64_t index, const RoundEntry&) override {
    window_ = index + 1;
    return Nothing{};
  }
  Answer Poll() override { return script_(window_); }
  std::string Save() const override { return {}; }
  Status Restore(const std::string&) override { return Nothing{}; }

 private:
  Script script_;
  std::optional<int> opening_;
  std::int64_t window_ = 0;
};

class WorkerTest : public testing::TestWithParam<OptimizerKind> {
 protected:
  void SetUp() override {
    SetThreads(1);
    job_.options.optimizer = {.kind = GetParam(),
                              .learning_rate = 0.02,
                              .weight_decay = GetParam() == OptimizerKind::kAdamW ? 0.1 : 0,
                              .base_batch = 32,
                              .rule = LearningRateRule::kSqrt,
                              .schedule = Schedule::kCosine,
                              .planned_samples = 2000};
    job_.options.window_iterations = 4;
  }
  SampleJob job_;
};

std::string NameOf(OptimizerKind kind) {
  return std::array{"Sgd", "Adam", "AdamW"}[static_cast<int>(kind)];
}

INSTANTIATE_TEST_SUITE_P(Optimizers, WorkerTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdam,
                                         OptimizerKind::kAdamW),
                         [](const auto& kind) { return NameOf(kind.param); });

constexpr double kTolerance = 3e-6;

TEST_P(WorkerTest, UnequalRanksTrainLikeOneRankWithTheUnion) {
  job_.start_batches = {5, 17, 1, 9};
  const std::vector<float> many = Train(job_, 20);
  job_.start_batches = {32};
  EXPECT_LT(LargestDifference(many, Train(job_, 20)), kTolerance);
}

TEST_P(WorkerTest, WhatIsNotFiniteIsNotTrainedOnAndEveryRankSaysSo) {
  job_.options.optimizer.learning_rate = 1e30;
  job_.options.optimizer.schedule = Schedule::kConstant;
  job_.start_batches = {5, 7};
  RunRanks(job_, [](Worker& worker, WorkerGroup&, Advisor*) {
    Status done = Nothing{};
    for (int i = 0; i < 20 && done; ++i) done = worker.Iterate();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error(), testing::HasSubstr("is not finite"));
  });
}

TEST_P(WorkerTest, AccumulationDoesNotChangeTheUpdate) {
  job_.start_batches = {5, 17, 10};
  const std::vector<float> whole = Train(job_, 20);
  job_.options.micro_batch = 4;
  EXPECT_LT(LargestDifference(whole, Train(job_, 20)), kTolerance);
}

TEST_P(WorkerTest, SeveralBucketsDoNotChangeTheUpdate) {
  job_.model.width = 8;
  // Adam steps by the rate where a gradient is next to zero, whatever its last bits are.
  job_.options.optimizer.learning_rate = 0.001;
  job_.start_batches = {3, 4};
  RunRanks(job_, [](Worker& worker, WorkerGroup&, Advisor*) {
    ASSERT_GE(worker.parameters().buckets().size(), 2u);
  });
  const std::vector<float> many = Train(job_, 5);
  job_.start_batches = {7};
  // 1 % of the way that five such steps can go: which last bits a gradient has depends on the CPU.
  const double adam_tolerance = 0.01 * 5 * job_.options.optimizer.learning_rate;
  EXPECT_LT(LargestDifference(many, Train(job_, 5)),
            GetParam() == OptimizerKind::kSgd ? kTolerance : adam_tolerance);
}

// SGD only: the biases of attention's keys have no gradient but rounding, which Adam makes whole
// steps of.
TEST(TextWorkerTest, UnequalRanksTrainLikeOneRankWithTheUnion) {
  SetThreads(1);
  SampleJob job{.model = {.name = "transformer", .width = 0.25}, .data = SampleText(500)};
  job.options.optimizer = {.learning_rate = 0.1, .base_batch = 16, .planned_samples = 2000};
  job.start_batches = {5, 2, 9};
  const std::vector<float> many = Train(job, 20);
  job.start_batches = {16};
  EXPECT_LT(LargestDifference(many, Train(job, 20)), kTolerance);
}

// Ranks get different advice, or none, or none yet: whatever batches they agree on, the update is
// that of one rank with the union of the samples.
TEST_P(WorkerTest, DifferentOrNoAdviceStillTrainsLikeTheUnion) {
  job_.start_batches = {8, 8, 8};
  std::mutex mutex;
  std::map<int, int> global_batches;  // by iteration
  std::vector<float> many;
  job_.advisor = [](WorkerGroup& group) -> std::unique_ptr<Advisor> {
    if (group.rank() == 2) return nullptr;
    return std::make_unique<ScriptedAdvisor>([rank = group.rank()](std::int64_t window) {
      if (window == 1 && rank == 1) return Answer{.ready = false, .batch = {}};
      if (window == 2) return Answer{.ready = true, .batch = rank == 0 ? 21 : -7};
      return Answer{.ready = true, .batch = 3 + 5 * rank};
    });
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < 20; ++i) {
      int global_batch = 0;
      for (const int batch : worker.batches()) global_batch += batch;
      ASSERT_TRUE(worker.Iterate().ok());
      const std::lock_guard lock(mutex);
      const auto [at, fresh] = global_batches.insert({i, global_batch});
      EXPECT_EQ(at->second, global_batch) << "ranks disagree in iteration " << i;
      if (group.rank() == 0) many = worker.parameters().CopyValues();
    }
  });
  EXPECT_GT(global_batches[19], 0);
  EXPECT_NE(global_batches[0], global_batches[10]);
  // One rank replays the same global batches, as advice to itself.
  job_.start_batches = {global_batches[0]};
  std::vector<float> one;
  int iteration = 0;
  job_.advisor = [&](WorkerGroup&) {
    return std::make_unique<ScriptedAdvisor>([&](std::int64_t) {
      return Answer{.ready = true, .batch = global_batches[iteration + 1]};
    });
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup&, Advisor*) {
    for (iteration = 0; iteration < 20; ++iteration) ASSERT_TRUE(worker.Iterate().ok());
    one = worker.parameters().CopyValues();
  });
  EXPECT_LT(LargestDifference(many, one), kTolerance);
}

TEST_P(WorkerTest, ConstantAdviceIsBitIdenticalToNone) {
  job_.start_batches = {5, 11};
  const std::vector<float> none = Train(job_, 20);
  job_.advisor = [this](WorkerGroup& group) {
    return std::make_unique<InProcessAdvisor>(group, SettingsOf(job_.options.optimizer),
                                              [](const Round&) {
                                                return std::vector<int>{5, 11};
                                              });
  };
  EXPECT_EQ(none, Train(job_, 20));
}

TEST_P(WorkerTest, AnOpeningIsInForceFromTheFirstIterationOnAndTrainsAsIfItWereTheStart) {
  job_.start_batches = {5, 11};
  const std::vector<float> started = Train(job_, 10);
  job_.start_batches = {10, 22};
  job_.advisor = [this](WorkerGroup& group) {
    return std::make_unique<InProcessAdvisor>(
        group, SettingsOf(job_.options.optimizer),
        [](const Round& round) { return Batches(round); }, OnRound{}, VisitDecider{},
        [](const Round& round) {
          EXPECT_EQ(Batches(round), (std::vector<int>{10, 22}));
          EXPECT_FALSE(round.entries[0].report || round.entries[1].report);
          EXPECT_EQ(round.base_batch, 32);
          return std::vector<int>{5, 11};
        });
  };
  EXPECT_EQ(Train(job_, 10), started);
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    EXPECT_EQ(worker.batches(), (std::vector<int>{5, 11})) << group.rank();
  });
}

TEST_P(WorkerTest, AnOpeningOutOfBoundsIsMadeLegal) {
  job_.start_batches = {8, 8};
  job_.advisor = [](WorkerGroup& group) {
    return std::make_unique<ScriptedAdvisor>([](std::int64_t) { return Answer{}; },
                                             group.rank() == 0 ? -5 : 1 << 30);
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup&, Advisor*) {
    const BatchBounds& bounds = worker.bounds();
    EXPECT_EQ(worker.batches(), (std::vector<int>{bounds.lowest(), bounds.highest()}));
  });
}

TEST_P(WorkerTest, SwitchingIsInOneIterationOnAllRanks) {
  job_.start_batches = {4, 4};
  job_.advisor = [this](WorkerGroup& group) {
    return std::make_unique<InProcessAdvisor>(
        group, SettingsOf(job_.options.optimizer), [](const Round& round) {
          return std::vector<int>{4 + static_cast<int>(round.index) + 1, 9};
        });
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    std::vector<int> trace;
    for (int i = 0; i < 11; ++i) {
      ASSERT_TRUE(worker.Iterate().ok());
      trace.push_back(worker.batches()[0]);
    }
    // Window of 4, one iteration to agree, then a window of 4 with the new batches.
    EXPECT_EQ(trace, (std::vector<int>{4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6})) << group.rank();
    EXPECT_EQ(worker.batches()[1], 9);
    EXPECT_EQ(worker.report().local_batch, group.rank() == 0 ? 5 : 9);
  });
}

TEST_P(WorkerTest, OutOfMemoryShrinksTheMicroBatchAndGoesOn) {
  job_.start_batches = {6, 20};
  const std::vector<float> enough = Train(job_, 12);
  std::vector<float> short_of_memory;
  job_.change = [](int rank, Trainable& trainable) {
    if (rank == 0) return;
    trainable.forward = [forward = trainable.forward](std::span<const Sample> samples,
                                                      PassSums& sums) {
      if (samples.size() > 7) throw std::bad_alloc();
      return forward(samples, sums);
    };
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(worker.Iterate().ok());
    if (group.rank() == 1) {
      EXPECT_EQ(worker.micro_batch(), 5);
      EXPECT_EQ(worker.bounds().max, 5);
    } else {
      short_of_memory = worker.parameters().CopyValues();
    }
  });
  EXPECT_LT(LargestDifference(enough, short_of_memory), kTolerance);
}

TEST_P(WorkerTest, OutOfMemoryInTheMiddleOfAnExchangeGoesOn) {
  job_.model.width = 8;  // two buckets: the first has left when the first layer's turn comes
  job_.start_batches = {6, 12};
  const std::vector<float> enough = Train(job_, 6);
  std::vector<float> short_of_memory;
  std::atomic<int> passes = 0;
  job_.change = [&passes](int rank, Trainable& trainable) {
    if (rank == 0) return;
    trainable.parameters[0].register_hook([&passes](const at::Tensor&) {
      if (++passes == 3) throw std::bad_alloc();  // the size was seen to fit twice
    });
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    ASSERT_GE(worker.parameters().buckets().size(), 2u);
    for (int i = 0; i < 6; ++i) {
      const Status done = worker.Iterate();
      ASSERT_TRUE(done.ok()) << done.error();
    }
    if (group.rank() == 0) short_of_memory = worker.parameters().CopyValues();
    EXPECT_EQ(worker.micro_batch(), group.rank() == 0 ? 256 : 6);
  });
  EXPECT_EQ(passes, 3 + 4 * 2);  // two passes an iteration since
  EXPECT_LT(LargestDifference(enough, short_of_memory), kTolerance);
}

TEST_P(WorkerTest, TooLittleMemoryForOneSampleIsAnError) {
  job_.change = [](int, Trainable& trainable) {
    trainable.forward = [](std::span<const Sample>, PassSums&) -> at::Tensor {
      throw std::bad_alloc();
    };
  };
  RunRanks(job_, [&](Worker& worker, WorkerGroup&, Advisor*) {
    const Status failed = worker.Iterate();
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error(), testing::HasSubstr("out of memory"));
  });
}

TEST_P(WorkerTest, ARestoredWorkerContinuesBitIdentically) {
  job_.start_batches = {5, 11};
  const std::vector<float> through = Train(job_, 20);
  std::vector<WorkerState> states(2);
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(worker.Iterate().ok());
    auto state = worker.Save();
    ASSERT_TRUE(state.ok());
    states[group.rank()] = std::move(state).value();
  });
  EXPECT_EQ(states[0].parameters, states[1].parameters);
  std::vector<float> resumed;
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    worker.Restore(states[0]);
    for (int i = 9; i < 20; ++i) ASSERT_TRUE(worker.Iterate().ok());
    if (group.rank() == 0) resumed = worker.parameters().CopyValues();
  });
  EXPECT_EQ(through, resumed);
}

// By steps: 16 samples at a base batch of 4 are twice the rate, and count as 8 samples.
TEST_P(WorkerTest, TheScheduleMayRunByStepsAlsoAfterARestore) {
  job_.start_batches = {5, 11};
  job_.options.optimizer.base_batch = 4;
  job_.options.optimizer.clock = ScheduleClock::kSteps;
  WorkerState state;
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.Iterate().ok());
    EXPECT_EQ(worker.samples_seen(), 160);
    EXPECT_DOUBLE_EQ(worker.progress(), 80.0 / 2000);
    auto saved = worker.Save();
    ASSERT_TRUE(saved.ok());
    if (group.rank() == 0) state = std::move(saved).value();
  });
  RunRanks(job_, [&](Worker& worker, WorkerGroup&, Advisor*) {
    worker.Restore(state);
    ASSERT_TRUE(worker.Iterate().ok());
    EXPECT_DOUBLE_EQ(worker.progress(), 88.0 / 2000);
  });
}

// Of start batches 5 and 11, whatever is in force: one rank has 16 of each, three have them shared.
TEST_P(WorkerTest, OtherRanksShareTheGlobalBatchAndTheStartOfASavedJob) {
  job_.start_batches = {5, 11};
  WorkerState state;
  RunRanks(job_, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    auto saved = worker.Save();
    ASSERT_TRUE(saved.ok());
    if (group.rank() == 0) state = std::move(saved).value();
  });
  state.batches = {20, 12};  // as advised
  for (const std::vector<int>& ranks : {std::vector<int>{9}, std::vector<int>{9, 9, 9}}) {
    job_.start_batches = ranks;
    RunRanks(job_, [&](Worker& worker, WorkerGroup&, Advisor*) {
      worker.Restore(state);
      EXPECT_EQ(std::accumulate(worker.batches().begin(), worker.batches().end(), 0), 32);
      const auto again = worker.Save();
      ASSERT_TRUE(again.ok());
      const std::vector<double>& starts = again.value().start_batches;
      EXPECT_EQ(std::accumulate(starts.begin(), starts.end(), 0.0), 16);
    });
  }
}

TEST_P(WorkerTest, TimesAddUpAndTheFastRankWaits) {
  job_.start_batches = {4, 4};
  std::vector<Report> reports(2);
  const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20});
  // Rank 1 is ready 20 ms after rank 0, however busy the machine is.
  std::atomic<int> ready{0};
  int iteration = 0;
  const auto fast = [&](int) { return ++ready, 0.0; };
  const auto slow = [&](int) {
    for (++iteration; ready < iteration;) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 0.0;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Classifier classifier(job_.model, BatchReader(job_.data, {}, 1), 1);
      WorkerOptions options = job_.options;
      options.start_batch = 4;
      options.bounds.min = 1;
      options.least_compute_ms = fast;
      if (rank == 1) options.least_compute_ms = slow;
      auto worker = Worker::Start(*groups[rank], TrainableOf(classifier), options);
      ASSERT_TRUE(worker.ok());
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(worker.value()->Iterate().ok());
      ASSERT_TRUE(worker.value()->window_ended());
      reports[rank] = worker.value()->report();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Report& report : reports) {
    EXPECT_NEAR(report.compute_ms + report.wait_ms + report.communication_ms, report.iteration_ms,
                1e-6);
    EXPECT_EQ(report.iterations, 4);
    EXPECT_FALSE(IsMissing(report.training.loss));
  }
  EXPECT_GE(reports[1].compute_ms, 20);
  EXPECT_GT(reports[0].wait_ms, reports[1].wait_ms);
}

TEST_P(WorkerTest, ALostPeerIsAnErrorNotAHang) {
  job_.start_batches = {4, 4};
  const auto groups = WorkerGroup::ConnectThreads(2, {.timeout_s = 20});
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Classifier classifier(job_.model, BatchReader(job_.data, {}, 1), 1);
      WorkerOptions options = job_.options;
      options.start_batch = 4;
      options.bounds.min = 1;
      auto worker = Worker::Start(*groups[rank], TrainableOf(classifier), options);
      ASSERT_TRUE(worker.ok());
      for (int i = 0; i < 10; ++i) {
        if (rank == 1 && i == 3) return;  // its sockets close with the group, below
        const Status done = worker.value()->Iterate();
        if (!done) errors[rank] = done.error();
        if (!done) return;
      }
    });
  }
  threads[1].join();
  const_cast<std::unique_ptr<WorkerGroup>&>(groups[1]).reset();
  threads[0].join();
  EXPECT_THAT(errors[0],
              testing::HasSubstr("rank 0 of 2 lost rank 1 (ended, stopped or too slow)"));
}

TEST(WorkerOptionsTest, AForwardThatCountsNoSamplesIsBadInput) {
  WorkerGroup alone;
  Classifier classifier({.name = "mlp", .width = 0.1}, BatchReader(SampleDataset(), {}, 1), 1);
  Trainable trainable = TrainableOf(classifier);
  trainable.forward = [&classifier](std::span<const Sample> samples, PassSums&) {
    PassSums lost;
    return classifier.Forward(samples, lost);
  };
  const auto worker = std::move(Worker::Start(alone, trainable, {})).value();
  EXPECT_THROW((void)worker->Iterate(), InputError);
}

TEST(WorkerOptionsTest, AreValidatedAtTheDoor) {
  WorkerGroup alone;
  Classifier classifier({.name = "mlp", .width = 0.1}, BatchReader(SampleDataset(), {}, 1), 1);
  WorkerOptions options;
  options.start_batch = 5000;
  EXPECT_THROW((void)Worker::Start(alone, TrainableOf(classifier), options), InputError);
}

TEST(WorkerGroupTest, NcclIsRefusedWithTheReason) {
  try {
    (void)WorkerGroup::Connect({.backend = "nccl"}, {});
    FAIL() << "models are on the CPU";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("DYNAMIX_BACKEND = nccl is not allowed"));
  }
}

}  // namespace
}  // namespace dynamix
