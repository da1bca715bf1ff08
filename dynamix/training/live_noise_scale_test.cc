// The noise scale that four live ranks measure against brute force over per-sample gradients.
#include <gtest/gtest.h>

#include "dynamix/training/testing/ranks_conformance.h"

namespace dynamix {
namespace {

// tr(S) / |G|^2 over the whole data set at the initial weights, from one gradient per sample: the
// gradient of a one-sample iteration is the difference it makes to the weights at rate 1.
double BruteForce(const SampleJob& job) {
  WorkerGroup alone;
  Classifier classifier(job.model, BatchReader(job.data, {}, 1), 1);
  WorkerOptions options = job.options;
  options.optimizer.learning_rate = 1;
  options.bounds.min = 1;
  options.start_batch = 1;
  const auto worker = std::move(Worker::Start(alone, TrainableOf(classifier), options)).value();
  const WorkerState start = std::move(worker->Save()).value();
  const std::size_t size = start.parameters.size();
  std::vector<double> mean(size, 0.0);
  double mean_square = 0;
  const int samples = job.data->training.count();
  for (int i = 0; i < samples; ++i) {
    WorkerState at = start;
    at.cursor = i;
    worker->Restore(at);
    EXPECT_TRUE(worker->Iterate().ok());
    const std::vector<float> after = worker->parameters().CopyValues();
    for (std::size_t p = 0; p < size; ++p) {
      const double gradient = double{start.parameters[p]} - after[p];
      mean[p] += gradient / samples;
      mean_square += gradient * gradient / samples;
    }
  }
  double squared_mean = 0;
  for (const double value : mean) squared_mean += value * value;
  return (mean_square - squared_mean) / squared_mean;
}

TEST(LiveNoiseScaleTest, FourUnequalRanksAgreeWithBruteForce) {
  SetThreads(1);
  SampleJob job;
  job.model = {.name = "mlp", .width = 0.05};
  job.data = SampleDataset(6000, 50);
  job.options.optimizer = {.learning_rate = 0.05, .momentum = 0, .base_batch = 32};
  const double truth = BruteForce(job);
  // The weights stand still (rate ~ 0) and the past counts fully, so that all iterations measure
  // one point.
  job.options.optimizer.learning_rate = 1e-30;
  job.options.noise_memory = 0.999;
  job.start_batches = {12, 48, 24, 44};
  double measured = 0;
  RunRanks(job, [&](Worker& worker, WorkerGroup& group, Advisor*) {
    for (int i = 0; i < 600; ++i) ASSERT_TRUE(worker.Iterate().ok());
    if (group.rank() == 0) measured = worker.noise_scale();
  });
  EXPECT_NEAR(measured / truth, 1, 0.1) << measured << " against " << truth;
}

}  // namespace
}  // namespace dynamix
