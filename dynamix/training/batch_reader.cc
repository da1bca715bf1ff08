#include "dynamix/training/batch_reader.h"

#include <algorithm>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"

namespace dynamix {

AugmentationOptions UsualAugmentation(const Dataset& data) {
  if (data.name.starts_with("cifar")) return {.crop = 4, .flip = true};
  return {};
}

BatchReader::BatchReader(std::shared_ptr<const Dataset> data,
                         const AugmentationOptions& augmentation, std::uint64_t seed)
    : data_(std::move(data)), augmentation_(augmentation), seed_(seed) {
  RequireInRange("augmentation crop", augmentation.crop, 0, 16);
  for (std::size_t channel = 0; channel < data_->mean.size(); ++channel) {
    std::array<float, 256>& table = value_.emplace_back();
    for (int byte = 0; byte < 256; ++byte) {
      table[byte] =
          (static_cast<float>(byte) / 255.0f - data_->mean[channel]) / data_->deviation[channel];
    }
  }
}

void BatchReader::Copy(const std::uint8_t* image, float* out) const {
  const int plane = data_->shape.height * data_->shape.width;
  for (const std::array<float, 256>& table : value_) {
    for (int p = 0; p < plane; ++p) out[p] = table[image[p]];
    image += plane;
    out += plane;
  }
}

void BatchReader::CopyAugmented(const std::uint8_t* image, std::int64_t position,
                                float* out) const {
  Rng rng = Rng(seed_).Fork(static_cast<std::uint64_t>(position));
  const int steps = 2 * augmentation_.crop + 1;
  const int down = static_cast<int>(rng.Below(steps)) - augmentation_.crop;
  const int right = static_cast<int>(rng.Below(steps)) - augmentation_.crop;
  const bool mirror = augmentation_.flip && rng.Below(2) == 1;
  const int height = data_->shape.height, width = data_->shape.width;
  for (const std::array<float, 256>& table : value_) {
    for (int y = 0; y < height; ++y, out += width) {
      std::fill(out, out + width, 0.0f);  // the mean, once normalised
      const int from_y = y + down;
      if (from_y < 0 || from_y >= height) continue;
      const std::uint8_t* row = image + static_cast<std::ptrdiff_t>(from_y) * width;
      const int first = std::max(0, -right), last = std::min(width, width - right);
      for (int x = first; x < last; ++x) out[mirror ? width - 1 - x : x] = table[row[x + right]];
    }
    image += static_cast<std::ptrdiff_t>(height) * width;
  }
}

void BatchReader::ReadTraining(std::span<const Sample> samples, float* inputs,
                               std::int64_t* labels) const {
  DYNAMIX_CHECK(!data_->shape.is_text(), "images");
  const std::size_t size = data_->shape.size();
  const bool augmented = augmentation_.crop > 0 || augmentation_.flip;
  for (const Sample& sample : samples) {
    DYNAMIX_CHECK(sample.index >= 0 && sample.index < data_->training.count(), "such a sample");
    const std::uint8_t* image = data_->training.inputs.data() + sample.index * size;
    if (augmented) {
      CopyAugmented(image, sample.position, inputs);
    } else {
      Copy(image, inputs);
    }
    *labels++ = data_->training.labels[sample.index];
    inputs += size;
  }
}

void BatchReader::ReadHeldOut(int first, int count, float* inputs, std::int64_t* labels) const {
  DYNAMIX_CHECK(!data_->shape.is_text(), "images");
  const std::size_t size = data_->shape.size();
  DYNAMIX_CHECK(first >= 0 && count >= 0 && first + count <= data_->held_out.count(),
                "such samples");
  for (int i = first; i < first + count; ++i, inputs += size) {
    Copy(data_->held_out.inputs.data() + i * size, inputs);
    *labels++ = data_->held_out.labels[i];
  }
}

void BatchReader::ReadTraining(std::span<const Sample> samples, std::int64_t* tokens,
                               std::int64_t* labels) const {
  DYNAMIX_CHECK(data_->shape.is_text(), "text");
  const int size = data_->shape.tokens;
  for (const Sample& sample : samples) {
    DYNAMIX_CHECK(sample.index >= 0 && sample.index < data_->training.count(), "such a sample");
    const std::size_t at = static_cast<std::size_t>(sample.index) * size;
    std::copy_n(data_->training.inputs.begin() + at, size, tokens);
    std::copy_n(data_->training.labels.begin() + at, size, labels);
    tokens += size;
    labels += size;
  }
}

void BatchReader::ReadHeldOut(int first, int count, std::int64_t* tokens,
                              std::int64_t* labels) const {
  DYNAMIX_CHECK(data_->shape.is_text(), "text");
  DYNAMIX_CHECK(first >= 0 && count >= 0 && first + count <= data_->held_out.count(),
                "such samples");
  // Sequences lie one after another.
  const std::size_t size = data_->shape.tokens, at = first * size;
  std::copy_n(data_->held_out.inputs.begin() + at, count * size, tokens);
  std::copy_n(data_->held_out.labels.begin() + at, count * size, labels);
}

}  // namespace dynamix
