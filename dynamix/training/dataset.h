// Data sets of small images, held in memory as the bytes of their files.
//
//   fashion_mnist, mnist   IDX files, plain or gzip
//   cifar10, cifar100      the official binary layout (scripts/fetch-cifar10 makes that of cifar10)
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

struct ImageShape {
  int channels = 1;
  int height = 28;
  int width = 28;
  std::size_t size() const { return static_cast<std::size_t>(channels) * height * width; }
};

// Images one after another, each channel by channel and row by row.
struct ImageSet {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  int count() const { return static_cast<int>(labels.size()); }
};

struct Dataset {
  std::string name;
  ImageShape shape;
  int classes = 10;
  // Of each channel of the training images, with pixels scaled to [0, 1].
  std::vector<float> mean, deviation;
  ImageSet training, held_out;
};

std::vector<std::string> DatasetNames();

// Throws InputError unless `name` is one of DatasetNames().
void RequireDatasetName(std::string_view name);

// Reads from `folder`, or from the folder of the official archive inside it.
Dataset LoadDataset(std::string_view name, const std::filesystem::path& folder);

}  // namespace dynamix
