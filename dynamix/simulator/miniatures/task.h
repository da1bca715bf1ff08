// A task of the miniatures: which rows of a pool are trained on, with which labels and feature
// scales.
//
// It stores row numbers, labels and one scale per component, about 5 bytes per sample, and shares
// the rows. Immutable once made; safe to read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/job/miniature_options.h"
#include "dynamix/simulator/miniatures/data.h"

namespace dynamix {

// One task: which rows, with which labels and feature scales.
struct MiniatureTask {
  struct Samples {
    std::vector<std::uint32_t> rows;  // of the pool
    std::vector<std::uint8_t> labels;
  };
  std::shared_ptr<const FeaturePool> pool;
  AlignedFloats scales;  // of each component in use, then zeros to a multiple of kLanes
  Samples training, held_out;
};

// Throws InputError when options are invalid or ask for more than the pool has.
MiniatureTask MakeMiniatureTask(const MiniatureOptions& options, const MiniaturePools& pools);

}  // namespace dynamix
