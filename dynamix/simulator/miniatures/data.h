// Data of the miniatures: pools of feature rows, loaded or generated once, from which tasks select.
//
// A pool is immutable and held by std::shared_ptr<const>, because thousands of miniatures on
// several threads read it and none outlives the others by rule. Its rows are whitened principal
// components. LoadFashionPool throws InputError naming the file and the package to install when a
// file is missing, truncated or corrupt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "dynamix/simulator/miniatures/kernels.h"

namespace dynamix {

struct FeaturePool {
  int inputs = 0;
  int stride = 0;          // PadToLanes(inputs); padding is zero
  int training_count = 0;  // rows [0, training_count) train, the next held_out_count are held out
  int held_out_count = 0;
  AlignedHalves rows;  // bfloat16; each component has mean 0 and deviation 1 over the training rows
  std::vector<double> deviations;    // natural deviation of each component, descending
  std::vector<std::uint8_t> labels;  // of each row; empty when families draw their own
};

// Fashion-MNIST from the four gzip IDX files of the Debian package dataset-fashion-mnist in
// `folder`.
std::shared_ptr<const FeaturePool> LoadFashionPool(const std::filesystem::path& folder);

// Standard normal rows; component d has natural deviation (d + 1)^-1/2, a power law.
std::shared_ptr<const FeaturePool> MakeGaussianPool(std::uint64_t seed, int training_count = 24000,
                                                    int held_out_count = 2000, int inputs = 64);

// What miniatures select from. A pool no family in use needs may be null.
struct MiniaturePools {
  std::shared_ptr<const FeaturePool> fashion;
  std::shared_ptr<const FeaturePool> gaussian;
};

}  // namespace dynamix
