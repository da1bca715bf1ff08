// The models and data sets that the training runtime knows: the one list of each, for workloads,
// for `dynamix list` and for `dynamix doctor`. Plain values.
#pragma once

#include <span>
#include <string_view>

namespace dynamix {

struct KnownModel {
  std::string_view name, description;
  bool text;  // of sequences, not of images
};

struct KnownDataset {
  std::string_view name, description;
  std::string_view remedy;  // how to get it: what to do, as an imperative
  bool text;
};

std::span<const KnownModel> KnownModels();
std::span<const KnownDataset> KnownDatasets();

}  // namespace dynamix
