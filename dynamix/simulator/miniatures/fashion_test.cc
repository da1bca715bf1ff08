// Miniatures on the real Fashion-MNIST. Skipped where the Debian package dataset-fashion-mnist is
// not installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "dynamix/core/input_error.h"
#include "dynamix/simulator/miniatures/miniature.h"

namespace dynamix {
namespace {

const std::filesystem::path kFolder = DYNAMIX_FASHION_MNIST_DIR;
#define DYNAMIX_NEED_FASHION_MNIST()     \
  if (!std::filesystem::exists(kFolder)) \
  GTEST_SKIP() << "needs the Debian package dataset-fashion-mnist in " << kFolder

TEST(MiniatureFashionTest, PoolIsWhiteAndALearnedNetworkIsFarAboveChance) {
  DYNAMIX_NEED_FASHION_MNIST();
  const MiniaturePools pools{LoadFashionPool(kFolder), nullptr};
  const FeaturePool& pool = *pools.fashion;
  EXPECT_EQ(pool.training_count, 60000);
  EXPECT_EQ(pool.held_out_count, 10000);
  EXPECT_TRUE(std::is_sorted(pool.deviations.rbegin(), pool.deviations.rend()));
  // Two neighbouring and two distant components: unit variance, no correlation.
  for (const auto& [p, q] : {std::pair{0, 1}, {3, 48}}) {
    double pp = 0, qq = 0, pq = 0;
    for (int r = 0; r < pool.training_count; ++r) {
      const double x = FromBfloat16(pool.rows[r * pool.stride + p]);
      const double y = FromBfloat16(pool.rows[r * pool.stride + q]);
      pp += x * x / 60000;
      qq += y * y / 60000;
      pq += x * y / 60000;
    }
    EXPECT_NEAR(pp, 1, 1e-3);
    EXPECT_NEAR(qq, 1, 1e-3);
    EXPECT_NEAR(pq, 0, 1e-3);
  }
  MiniatureOptions options;
  options.training_samples = 20000;
  options.held_out_samples = 2000;
  Miniature miniature(options, pools);
  EXPECT_LT(miniature.HeldOutAccuracy(), 0.3);
  const std::vector<int> batches = {64, 32, 16, 16};
  const double early = miniature.Run(batches, 20).noise_scale;
  miniature.Run(batches, 1500);
  EXPECT_GT(miniature.HeldOutAccuracy(), 0.8);
  EXPECT_GT(miniature.Run(batches, 20).noise_scale, 2 * early);

  options.network.classes = 4;
  const MiniatureTask few = MakeMiniatureTask(options, pools);
  EXPECT_EQ(*std::max_element(few.training.labels.begin(), few.training.labels.end()), 3);
}

TEST(MiniatureFashionTest, RefusesATruncatedFileByName) {
  DYNAMIX_NEED_FASHION_MNIST();
  const auto folder = std::filesystem::path(::testing::TempDir()) / "dynamix_truncated_fashion";
  std::filesystem::create_directories(folder);
  const std::string name = "train-images-idx3-ubyte.gz";
  std::ifstream in(kFolder / name, std::ios::binary);
  std::string bytes(100000, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::ofstream(folder / name, std::ios::binary) << bytes;
  try {
    LoadFashionPool(folder);
    ADD_FAILURE() << "read a truncated file";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("dataset-fashion-mnist"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dynamix
