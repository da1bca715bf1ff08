// N ranks as threads of one process, for tests: each with a group, a classifier and a worker.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "dynamix/training/testing/sample_dataset.h"
#include "dynamix/training/worker.h"

namespace dynamix {

struct SampleJob {
  ModelOptions model{.name = "mlp", .width = 0.1};
  WorkerOptions options;
  std::vector<int> start_batches = {8};
  std::shared_ptr<const Dataset> data = SampleDataset();
  // Made per rank when set.
  std::function<std::unique_ptr<Advisor>(WorkerGroup&)> advisor;
  // Changes what a rank trains, e.g. to run out of memory.
  std::function<void(int rank, Trainable&)> change;
};

// Runs `body` on every rank at once; a rank that cannot start fails the test.
inline void RunRanks(const SampleJob& job,
                     const std::function<void(Worker&, WorkerGroup&, Advisor*)>& body) {
  const int size = static_cast<int>(job.start_batches.size());
  const auto groups = WorkerGroup::ConnectThreads(size, {.timeout_s = 20});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      // Ranks differ in their initial weights: starting must make them equal.
      Classifier classifier(job.model, BatchReader(job.data, {}, 1), 1 + rank);
      WorkerOptions options = job.options;
      options.start_batch = job.start_batches[rank];
      options.bounds.min = 1;
      const auto advisor = job.advisor ? job.advisor(*groups[rank]) : nullptr;
      Trainable trainable = TrainableOf(classifier);
      if (job.change) job.change(rank, trainable);
      auto worker = Worker::Start(*groups[rank], trainable, options, advisor.get());
      ASSERT_TRUE(worker.ok()) << worker.error();
      body(*worker.value(), *groups[rank], advisor.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rank 0's weights after `iterations`.
inline std::vector<float> Train(const SampleJob& job, int iterations) {
  std::vector<float> weights;
  RunRanks(job, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < iterations; ++i) {
      const Status done = worker.Iterate();
      ASSERT_TRUE(done.ok()) << done.error();
    }
    if (group.rank() == 0) weights = worker.parameters().CopyValues();
  });
  return weights;
}

inline double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  return largest;
}

}  // namespace dynamix
