// A small data set that can be learned, for tests: each class lights its own part of the image,
// under noise.
#pragma once

#include <cstdint>
#include <memory>

#include "dynamix/core/rng.h"
#include "dynamix/training/dataset.h"

namespace dynamix {

inline ImageSet SampleImages(const ImageShape& shape, int count, int classes, Rng rng) {
  ImageSet set;
  const int size = static_cast<int>(shape.size());
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(rng.Below(classes));
    for (int p = 0; p < size; ++p) {
      const int lit = p * classes / size == label ? 60 : 0;
      set.pixels.push_back(static_cast<std::uint8_t>(rng.Below(160) + lit));
    }
    set.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return set;
}

inline std::shared_ptr<const Dataset> SampleDataset(int training = 600, int held_out = 200,
                                                    const ImageShape& shape = {1, 8, 8}) {
  auto data = std::make_shared<Dataset>();
  data->name = "fashion_mnist";
  data->shape = shape;
  data->classes = 4;
  data->mean.assign(shape.channels, 0.37f);
  data->deviation.assign(shape.channels, 0.2f);
  data->training = SampleImages(shape, training, data->classes, Rng(1));
  data->held_out = SampleImages(shape, held_out, data->classes, Rng(2));
  return data;
}

}  // namespace dynamix
