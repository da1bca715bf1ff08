#include "dynamix/simulator/sample_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace dynamix {
namespace {

std::vector<std::uint32_t> Take(SampleOrder& order, int count) {
  std::vector<std::uint32_t> taken;
  order.Take(count, [&](std::uint32_t sample) { taken.push_back(sample); });
  return taken;
}

TEST(SampleOrderTest, ReadsEverySampleOncePerEpochUnderChangingBatches) {
  constexpr int kSamples = 101;
  SampleOrder order(kSamples, Rng(3));
  Rng rng(4);
  std::vector<std::uint32_t> taken;
  while (taken.size() < 5 * kSamples) {
    const int batch = static_cast<int>(rng.Below(260));
    for (const std::uint32_t sample : Take(order, batch)) taken.push_back(sample);
  }
  std::vector<std::uint32_t> first(taken.begin(), taken.begin() + kSamples);
  for (int epoch = 0; epoch < 5; ++epoch) {
    std::vector<int> seen(kSamples, 0);
    for (int i = 0; i < kSamples; ++i) ++seen.at(taken[epoch * kSamples + i]);
    EXPECT_EQ(seen, std::vector<int>(kSamples, 1)) << "epoch " << epoch;
  }
  const std::vector<std::uint32_t> second(taken.begin() + kSamples, taken.begin() + 2 * kSamples);
  EXPECT_NE(first, second);
}

TEST(SampleOrderTest, DoesNotDependOnHowTheSamplesAreSplit) {
  SampleOrder whole(50, Rng(9)), parts(50, Rng(9));
  std::vector<std::uint32_t> taken;
  for (const int count : {1, 7, 0, 42, 60, 10})
    for (const std::uint32_t sample : Take(parts, count)) taken.push_back(sample);
  EXPECT_EQ(Take(whole, 120), taken);
}

TEST(SampleOrderTest, CopyContinuesIdentically) {
  SampleOrder order(64, Rng(1));
  Take(order, 40);
  SampleOrder copy = order;
  EXPECT_EQ(Take(order, 500), Take(copy, 500));
}

}  // namespace
}  // namespace dynamix
