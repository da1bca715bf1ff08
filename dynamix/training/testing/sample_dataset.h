// Small data sets that can be learned, for tests: images in which each class lights its own part,
// under noise, and a text of few words.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "dynamix/core/rng.h"
#include "dynamix/training/dataset.h"
#include "dynamix/training/text_data.h"

namespace dynamix {

inline SampleSet SampleImages(const SampleShape& shape, int count, int classes, Rng rng) {
  SampleSet set;
  const int size = static_cast<int>(shape.size());
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(rng.Below(classes));
    for (int p = 0; p < size; ++p) {
      const int lit = p * classes / size == label ? 60 : 0;
      set.inputs.push_back(static_cast<std::uint8_t>(rng.Below(160) + lit));
    }
    set.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return set;
}

inline std::shared_ptr<const Dataset> SampleDataset(int training = 600, int held_out = 200,
                                                    const SampleShape& shape = {1, 8, 8}) {
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

// Words drawn one after another: within a word the next byte is nearly certain.
inline std::string SampleWords(int words, Rng rng) {
  const char* const kWords[] = {"red ", "yellow ", "orange ", "black ", "green ", "white "};
  std::string text;
  for (int i = 0; i < words; ++i) text += kWords[rng.Below(std::size(kWords))];
  return text;
}

inline std::shared_ptr<const Dataset> SampleText(int words = 3000, int tokens = 16) {
  auto data = std::make_shared<Dataset>();
  data->name = "bible";
  SetText(*data, SampleWords(words, Rng(3)), tokens);
  return data;
}

}  // namespace dynamix
