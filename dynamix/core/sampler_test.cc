#include "dynamix/core/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

std::vector<int> RandomBatches(Rng& rng, int workers) {
  std::vector<int> batches(workers);
  for (int& batch : batches) batch = static_cast<int>(rng.Below(70));
  batches[rng.Below(workers)] += 1;  // somebody works
  return batches;
}

// Each epoch's indices, in the order the job read them.
void ExpectEachIndexOncePerEpoch(const std::vector<std::int64_t>& read, std::int64_t samples) {
  for (std::size_t begin = 0; begin + samples <= read.size(); begin += samples) {
    std::vector<std::int64_t> epoch(read.begin() + begin, read.begin() + begin + samples);
    std::sort(epoch.begin(), epoch.end());
    for (std::int64_t i = 0; i < samples; ++i) ASSERT_EQ(epoch[i], i) << "epoch at " << begin;
  }
}

TEST(SamplerTest, EachIndexOncePerEpochUnderRandomBatchesJoinsAndResumes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const std::int64_t samples = 50 + static_cast<std::int64_t>(rng.Below(400));
    int workers = 1 + static_cast<int>(rng.Below(6));
    std::vector<Sampler> ranks(workers, Sampler(samples, seed));
    std::vector<std::int64_t> read;
    for (int iteration = 0; iteration < 60; ++iteration) {
      if (rng.Below(8) == 0) {  // a worker joins or leaves, and all resume from the cursor
        workers = 1 + static_cast<int>(rng.Below(6));
        ranks.assign(workers, Sampler(samples, seed, ranks[0].cursor()));
      }
      const std::vector<int> batches = RandomBatches(rng, workers);
      for (int rank = 0; rank < workers; ++rank) {
        for (const Sample& sample : ranks[rank].Part(batches, rank)) {
          EXPECT_EQ(sample.position, static_cast<std::int64_t>(read.size()));
          read.push_back(sample.index);
        }
      }
      for (Sampler& sampler : ranks) sampler.Advance(batches);
      ASSERT_EQ(ranks[0].cursor(), static_cast<std::int64_t>(read.size()));
    }
    ExpectEachIndexOncePerEpoch(read, samples);
  }
}

TEST(SamplerTest, TheOrderDoesNotDependOnTheBatches) {
  Sampler one(97, 3), many(97, 3);
  const std::vector<Sample> whole = one.Part({200}, 0);
  std::vector<std::int64_t> parts;
  for (int iteration = 0; iteration < 20; ++iteration) {
    for (int rank = 0; rank < 2; ++rank)
      for (const Sample& sample : many.Part({3, 7}, rank)) parts.push_back(sample.index);
    many.Advance({3, 7});
  }
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i], whole[i].index);
}

TEST(SamplerTest, EpochsThatAreReadAloneEndExactlyAndGiveEverybodyTwoSamples) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const int workers = 1 + static_cast<int>(rng.Below(6));
    const std::int64_t samples = 2 * workers + static_cast<std::int64_t>(rng.Below(300));
    Sampler sampler(samples, seed);
    std::vector<std::int64_t> read;
    while (sampler.epoch() == 0) {
      std::vector<int> batches(workers);
      for (int& batch : batches) batch = 2 + static_cast<int>(rng.Below(40));
      const std::vector<int> parts = sampler.WithinEpoch(batches);
      const bool last =
          sampler.cursor() + std::accumulate(parts.begin(), parts.end(), 0) == samples;
      for (int rank = 0; rank < workers; ++rank) {
        EXPECT_GE(parts[rank], 2) << "seed " << seed;
        EXPECT_TRUE(last || parts[rank] == batches[rank]) << "seed " << seed;
        for (const Sample& sample : sampler.Part(parts, rank)) read.push_back(sample.index);
      }
      sampler.Advance(parts);
    }
    ASSERT_EQ(sampler.cursor(), samples) << "seed " << seed;
    ExpectEachIndexOncePerEpoch(read, samples);
  }
}

TEST(SamplerTest, TheLastIterationOfAnEpochIsSharedInProportion) {
  EXPECT_EQ(Sampler(100, 1, 88).WithinEpoch({20, 10}), (std::vector<int>{8, 4}));
  EXPECT_EQ(Sampler(100, 1, 69).WithinEpoch({20, 10}), (std::vector<int>{21, 10}));
  EXPECT_EQ(Sampler(100, 1, 70).WithinEpoch({20, 10}), (std::vector<int>{20, 10}));
  EXPECT_EQ(Sampler(100, 1, 60).WithinEpoch({20, 10}), (std::vector<int>{20, 10}));
  EXPECT_EQ(Sampler(100, 1, 99).WithinEpoch({20, 10}), (std::vector<int>{1, 0}));
}

TEST(SamplerTest, EpochsAndSeedsDiffer) {
  Sampler sampler(100, 1), other(100, 2);
  const auto indices = [](const std::vector<Sample>& samples) {
    std::vector<std::int64_t> list;
    for (const Sample& sample : samples) list.push_back(sample.index);
    return list;
  };
  EXPECT_NE(indices(sampler.At(0, 100)), indices(sampler.At(100, 100)));
  EXPECT_NE(indices(sampler.At(0, 100)), indices(other.At(0, 100)));
}

}  // namespace
}  // namespace dynamix
