#include "dynamix/core/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

// Gradients with mean G and diagonal per-sample covariance, averaged over unequal batches.
struct Synthetic {
  std::vector<double> mean, deviation;
  double trace = 0, squared_norm = 0;

  explicit Synthetic(int dimensions) {
    for (int d = 0; d < dimensions; ++d) {
      mean.push_back(0.3 / (1 + d));
      deviation.push_back(0.5 + 0.1 * d);
      trace += deviation[d] * deviation[d];
      squared_norm += mean[d] * mean[d];
    }
  }

  GradientNoise Draw(const std::vector<double>& batches, Rng& rng) const {
    double total = 0;
    for (double b : batches) total += b;
    std::vector<double> global(mean.size(), 0), norms;
    for (double b : batches) {
      double norm = 0;
      for (std::size_t d = 0; d < mean.size() && b > 0; ++d) {
        const double g = mean[d] + deviation[d] / std::sqrt(b) * rng.Normal();
        norm += g * g;
        global[d] += b / total * g;
      }
      norms.push_back(norm);
    }
    double norm = 0;
    for (double g : global) norm += g * g;
    return EstimateNoise(batches, norms, norm);
  }
};

TEST(NoiseScaleTest, IsUnbiasedUnderUnequalBatches) {
  const Synthetic synthetic(12);
  Rng rng(1);
  for (const std::vector<double>& batches :
       {std::vector<double>{4, 64, 16, 100}, {32, 32}, {1, 200, 0, 3, 50}}) {
    const int draws = 40000;
    double trace = 0, squared = 0, trace2 = 0, squared2 = 0;
    for (int i = 0; i < draws; ++i) {
      const GradientNoise noise = synthetic.Draw(batches, rng);
      trace += noise.trace;
      squared += noise.squared_norm;
      trace2 += noise.trace * noise.trace;
      squared2 += noise.squared_norm * noise.squared_norm;
    }
    const auto error = [draws](double sum, double squares) {
      const double m = sum / draws;
      return std::sqrt((squares / draws - m * m) / draws);
    };
    EXPECT_NEAR(trace / draws, synthetic.trace, 5 * error(trace, trace2));
    EXPECT_NEAR(squared / draws, synthetic.squared_norm, 5 * error(squared, squared2));
  }
}

TEST(NoiseScaleTest, SmoothedRatioApproachesTheTruth) {
  const Synthetic synthetic(12);
  Rng rng(2);
  NoiseScale scale(0.999);
  for (int i = 0; i < 20000; ++i) scale.Add(synthetic.Draw({20, 40, 80}, rng));
  EXPECT_NEAR(scale.value() / (synthetic.trace / synthetic.squared_norm), 1, 0.1);
}

TEST(NoiseScaleTest, IsMissingWithOneWorkerOrBadNumbers) {
  EXPECT_TRUE(IsMissing(EstimateNoise(10, 1, 32, 1).trace));
  EXPECT_TRUE(IsMissing(EstimateNoise(kMissing, 1, 32, 4).trace));
  EXPECT_TRUE(IsMissing(EstimateNoise(10, HUGE_VAL, 32, 4).trace));
  NoiseScale scale;
  EXPECT_TRUE(IsMissing(scale.value()));
  scale.Add(EstimateNoise(10, kMissing, 32, 4));
  EXPECT_TRUE(IsMissing(scale.value()));
}

TEST(NoiseScaleTest, IsZeroWhenAllWorkersAgree) {
  NoiseScale scale;
  scale.Add(EstimateNoise(std::vector<double>{8, 24}, std::vector<double>{4, 4}, 4));
  EXPECT_EQ(scale.value(), 0);
}

TEST(GroupWorkersTest, KeepsEverySampleInFewGroups) {
  const std::vector<int> batches = {5, 0, 7, 1, 1, 2};
  EXPECT_EQ(GroupWorkers(batches, 8), (std::vector<int>{5, 7, 1, 1, 2}));
  EXPECT_EQ(GroupWorkers(batches, 2), (std::vector<int>{13, 3}));
  EXPECT_EQ(GroupWorkers(batches, 1), (std::vector<int>{16}));
}

}  // namespace
}  // namespace dynamix
