// Reads samples of a data set into what a model takes: images as floats, scaled, normalised per
// channel, and for training augmented; text as tokens.
//
// Augmentation of a sample depends on the seed and on its position in the job's stream, not on the
// worker that reads it: N workers read exactly what one worker would. Const methods are
// thread-safe. Never fails; samples must exist and be of the kind that is read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dynamix/core/sampler.h"
#include "dynamix/training/dataset.h"

namespace dynamix {

struct AugmentationOptions {
  int crop = 0;  // pixels the image may move in each direction, edges filled with the mean, [0, 16]
  bool flip = false;  // mirror left to right in half of the cases
};

// What the data set's authors' successors use: crop 4 and flip for CIFAR, nothing for the others.
AugmentationOptions UsualAugmentation(const Dataset& data);

class BatchReader {
 public:
  // Shared because every worker of a virtual cluster reads the same data.
  BatchReader(std::shared_ptr<const Dataset> data, const AugmentationOptions& augmentation,
              std::uint64_t seed);

  // `inputs` has room for samples.size() samples of the data's shape, `labels` for their labels.
  void ReadTraining(std::span<const Sample> samples, float* inputs, std::int64_t* labels) const;
  void ReadTraining(std::span<const Sample> samples, std::int64_t* tokens,
                    std::int64_t* labels) const;
  // Held-out samples first, first + 1, ..., never augmented.
  void ReadHeldOut(int first, int count, float* inputs, std::int64_t* labels) const;
  void ReadHeldOut(int first, int count, std::int64_t* tokens, std::int64_t* labels) const;

  const Dataset& data() const { return *data_; }

 private:
  void Copy(const std::uint8_t* image, float* out) const;
  void CopyAugmented(const std::uint8_t* image, std::int64_t position, float* out) const;

  std::shared_ptr<const Dataset> data_;
  AugmentationOptions augmentation_;
  std::uint64_t seed_;
  std::vector<std::array<float, 256>> value_;  // per channel: byte to normalised float
};

}  // namespace dynamix
