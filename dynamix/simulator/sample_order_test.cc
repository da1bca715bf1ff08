#include "dynamix/simulator/sample_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace dynamix {
namespace {

SampleOrder MakeOrder(int samples, std::uint64_t seed) {
  std::vector<std::uint32_t> all(samples);
  std::iota(all.begin(), all.end(), 0u);
  return SampleOrder(all, Rng(seed));
}

std::vector<std::uint32_t> Take(SampleOrder& order, int count) {
  std::vector<std::uint32_t> taken;
  order.Take(count, [&](std::uint32_t sample) { taken.push_back(sample); });
  return taken;
}

TEST(SampleOrderTest, ReadsEverySampleOncePerEpochUnderChangingBatches) {
  constexpr int kSamples = 101;
  SampleOrder order = MakeOrder(kSamples, 3);
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
  SampleOrder whole = MakeOrder(50, 9), parts = whole;
  std::vector<std::uint32_t> taken;
  for (const int count : {1, 7, 0, 42, 60, 10})
    for (const std::uint32_t sample : Take(parts, count)) taken.push_back(sample);
  EXPECT_EQ(Take(whole, 120), taken);
}

TEST(SampleOrderTest, PeekTellsWhatTakeGivesUpToTheEndOfTheEpoch) {
  SampleOrder order = MakeOrder(64, 2);
  Take(order, 50);
  const auto next = order.Peek(20);
  const std::vector<std::uint32_t> peeked(next.begin(), next.end());
  EXPECT_EQ(peeked.size(), 14u);
  EXPECT_EQ(peeked, Take(order, 14));
}

TEST(SampleOrderTest, CopyContinuesIdentically) {
  SampleOrder order = MakeOrder(64, 1);
  Take(order, 40);
  SampleOrder copy = order;
  EXPECT_EQ(Take(order, 500), Take(copy, 500));
}

}  // namespace
}  // namespace dynamix
