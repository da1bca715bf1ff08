// Data sets of small images and of text, held in memory as the bytes of their files.
//
//   fashion_mnist, mnist   images: IDX files, plain or gzip
//   cifar10, cifar100      images: the official binary layout (scripts/fetch-cifar10 makes that of
//                          cifar10)
//   bible, moby            text: one file whose sha256 is pinned (scripts/fetch-text makes it)
// A text is cut into sequences of 64 bytes; a byte is a token, and its label is the next byte. The
// last tenth of a text is held out.
// Immutable once loaded, so safe to read from any thread. LoadDataset throws InputError naming the
// file that is missing, truncated or corrupt, and the command that brings a good one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dynamix {

// One sample: an image, or a sequence of tokens.
struct SampleShape {
  int channels = 1;
  int height = 28;
  int width = 28;
  int tokens = 0;  // > 0: text, and the three above mean nothing
  bool is_text() const { return tokens > 0; }
  // Bytes of input.
  std::size_t size() const {
    return is_text() ? tokens : static_cast<std::size_t>(channels) * height * width;
  }
  // What is predicted of one sample: the image's class, or the byte after each token.
  int labels() const { return is_text() ? tokens : 1; }
};

// Samples one after another: images channel by channel and row by row, sequences token by token.
struct SampleSet {
  std::vector<std::uint8_t> inputs;
  std::vector<std::uint8_t> labels;
  int labels_per_sample = 1;
  int count() const { return static_cast<int>(labels.size() / labels_per_sample); }
};

struct Dataset {
  std::string name;
  SampleShape shape;
  int classes = 10;
  // Of each channel of the training images, with pixels scaled to [0, 1]; empty for text.
  std::vector<float> mean, deviation;
  SampleSet training, held_out;
};

std::vector<std::string> DatasetNames();

// Throws InputError unless `name` is one of DatasetNames().
void RequireDatasetName(std::string_view name);

// Training samples of a data set, known without its files.
int TrainingSamples(std::string_view name);

// How many of the first held-out samples are measured: `asked`, or when that is 0 as many as tell
// what `images` images do (a sequence makes many predictions, though alike ones); at most all.
int HeldOutSamples(const Dataset& data, int asked, int images);

// Reads from `folder`, or from the folder of the official archive inside it.
Dataset LoadDataset(std::string_view name, const std::filesystem::path& folder);

}  // namespace dynamix
