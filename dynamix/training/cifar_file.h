// Files of CIFAR-10 and CIFAR-100 in the official binary layout: records of the label (CIFAR-100:
// coarse label, fine label) and 3 x 32 x 32 bytes, red plane first.
//
// Thread-safe. A file that is missing, of another length, or holds an impossible label throws
// InputError naming the file and what was expected.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dynamix/training/dataset.h"

namespace dynamix {

enum class CifarKind { kCifar10, kCifar100 };

struct CifarFile {
  std::string name;
  int images;
  bool held_out;
};

std::vector<CifarFile> CifarFiles(CifarKind kind);

// Appends the file's images, with fine labels, to `set`. `images` is what the file must hold.
void AppendCifarFile(const std::filesystem::path& path, CifarKind kind, int images, SampleSet& set);

}  // namespace dynamix
