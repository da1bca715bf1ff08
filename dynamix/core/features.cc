#include "dynamix/core/features.h"

#include <array>
#include <cstdio>

namespace dynamix {
namespace {

using enum FeatureFamily;

// clang-format off
constexpr std::array<Feature, kLocalFeatureCount> kLocalFeatures = {{
  {"batch_growth",        "log2",   -8, 8,    kBatch,   true,  "local batch over the batch the job started with"},
  {"share_gap",           "log2",   -4, 4,    kSystem,  true,  "speed-proportional share of the global batch over the local batch"},
  {"compute_ratio",       "log2",   -4, 4,    kSystem,  true,  "compute time over the workers' mean"},
  {"compute_share",       "share",   0, 1,    kSystem,  false, "compute time over the iteration"},
  {"wait_share",          "share",   0, 1,    kSystem,  true,  "wait for the slowest worker over the iteration"},
  {"communication_share", "share",   0, 1,    kNetwork, true,  "exposed communication over the iteration"},
  {"retransmission",      "share",   0, 0.25, kNetwork, true,  "retransmitted over sent segments"},
  {"rtt_inflation",       "log2",    0, 8,    kNetwork, true,  "smoothed over minimum round-trip time"},
  {"delivery_ratio",      "log2",   -4, 4,    kNetwork, true,  "delivery rate over the workers' mean"},
  {"cpu_use",             "share",   0, 1,    kSystem,  true,  "used over allotted CPU time"},
  {"cpu_throttled",       "share",   0, 1,    kSystem,  true,  "share of the window held back by a CPU quota"},
  {"cpu_pressure",        "share",   0, 1,    kSystem,  true,  "share of the window some task waited for a CPU"},
  {"memory_headroom",     "share",   0, 1,    kSystem,  true,  "free over allowed memory"},
  {"at_lowest",           "flag",    0, 1,    kBatch,   true,  "the local batch is the lowest legal one"},
  {"at_highest",          "flag",    0, 1,    kBatch,   true,  "the local batch is the highest legal one"},
  {"last_change",         "log2",   -2, 2,    kBatch,   false, "the worker's last change of batch"},
  {"change_age",          "rounds",  0, 1,    kBatch,   false, "rounds since that change, as age / (age + 4)"},
}};

constexpr std::array<Feature, kGlobalFeatureCount> kGlobalFeatures = {{
  {"noise_to_batch",       "log2",  -12, 12,  kStatistics, false, "smoothed gradient noise scale over the global batch"},
  {"accuracy",             "share",   0, 1,   kStatistics, false, "training accuracy of the window"},
  {"accuracy_gain",        "share", -0.2, 0.2, kStatistics, false, "smoothed gain of accuracy per 20 iterations"},
  {"accuracy_spread",      "share",   0, 0.5, kStatistics, false, "deviation of accuracy inside the window"},
  {"loss_slope",           "ratio",  -1, 1,   kStatistics, false, "smoothed relative fall of the loss per 20 iterations"},
  {"step_efficiency",      "ratio",  -4, 6,   kStatistics, false, "fall of the loss over what the steps promised, learning rate x squared gradient norm, as asinh"},
  {"gradient_variability", "ratio",   0, 4,   kStatistics, false, "deviation over mean of the gradient norm"},
  {"learning_rate",        "log2",  -12, 8,   kStatistics, false, "learning rate over the job's base rate"},
  {"progress",             "share",   0, 1,   kStatistics, false, "part of the schedule that is over, on its clock"},
  {"target_gap",           "log2",   -4, 8,   kStatistics, false, "smoothed training error over the error at the target accuracy, or smoothed training loss over the target loss"},
  {"rule_linear",          "flag",    0, 1,   kStatistics, false, "the learning rate follows the batch linearly"},
  {"rule_sqrt",            "flag",    0, 1,   kStatistics, false, "the learning rate follows the root of the batch"},
  {"rule_adascale",        "flag",    0, 1,   kStatistics, false, "the learning rate follows the AdaScale gain"},
  {"schedule_cosine",      "flag",    0, 1,   kStatistics, false, "the learning rate falls along a cosine until the planned samples are seen, with or without a warm-up before"},
  {"schedule_step",        "flag",    0, 1,   kStatistics, false, "the learning rate falls in steps until the planned samples are seen"},
  {"adaptive",             "flag",    0, 1,   kStatistics, false, "the optimizer scales every weight's step by itself (Adam, AdamW)"},
  {"heterogeneity",        "log2",    0, 4,   kSystem,     false, "slowest over mean compute time"},
  {"iteration_growth",     "log2",   -8, 8,   kSystem,     false, "iteration time over the first window's"},
  {"time_at_twice",        "log2",    0, 2,   kSystem,     false, "time of an iteration at twice the global batch over now, from each worker's measured times"},
  {"time_at_half",         "log2",   -2, 0,   kSystem,     false, "time of an iteration at half the global batch over now, from each worker's measured times"},
  {"mean_growth",          "log2",   -8, 8,   kBatch,      false, "mean local batch over the mean start batch"},
  {"base_ratio",           "log2",   -8, 8,   kBatch,      false, "global batch over the one the base learning rate belongs to"},
  {"goodput_gap",          "log2",   -8, 8,   kBatch,      false, "global batch of most goodput over the global batch"},
  {"soonest_gap",          "log2",   -8, 8,   kBatch,      false, "global batch of least time to go over the global batch"},
  {"team_last_change",     "log2",   -2, 2,   kBatch,      false, "last change of the mean local batch"},
  {"team_change_age",      "rounds",  0, 1,   kBatch,      false, "rounds since that change, as age / (age + 4)"},
  {"network_tier",         "share",   0, 1,   kNetwork,    false, "source of network metrics: 0 none ... 1 eBPF"},
}};
// clang-format on

constexpr std::array<std::string_view, 3> kPools = {".mean", ".max", ".spread"};

}  // namespace

std::string_view Name(FeatureFamily family) {
  constexpr std::array<std::string_view, 4> kNames = {"batch", "network", "system", "statistics"};
  return kNames[static_cast<int>(family)];
}

std::span<const Feature> LocalFeatures() { return kLocalFeatures; }
std::span<const Feature> GlobalFeatures() { return kGlobalFeatures; }

int LocalWidth() { return int{kLocalFeatureCount} + int{kGlobalFeatureCount}; }

int TeamWidth() {
  int width = kGlobalFeatureCount;
  for (const Feature& feature : kLocalFeatures) width += feature.pooled ? 3 : 0;
  return width;
}

std::vector<Column> LocalColumns() {
  std::vector<Column> columns;
  for (const Feature& feature : kLocalFeatures)
    columns.push_back({std::string(feature.name), feature.family});
  for (const Feature& feature : kGlobalFeatures)
    columns.push_back({std::string(feature.name), feature.family});
  return columns;
}

std::vector<Column> TeamColumns() {
  std::vector<Column> columns;
  for (const Feature& feature : kGlobalFeatures)
    columns.push_back({std::string(feature.name), feature.family});
  for (const Feature& feature : kLocalFeatures) {
    if (!feature.pooled) continue;
    for (std::string_view pool : kPools)
      columns.push_back({std::string(feature.name) + std::string(pool), feature.family});
  }
  return columns;
}

std::uint64_t FeatureHash() {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) {
      hash ^= static_cast<unsigned char>(c);
      hash *= 0x100000001b3ULL;
    }
  };
  for (const auto list : {LocalFeatures(), GlobalFeatures()}) {
    for (const Feature& feature : list) {
      char line[160];
      std::snprintf(line, sizeof line, "%.*s|%.*s|%g|%g|%d\n",
                    static_cast<int>(feature.name.size()), feature.name.data(),
                    static_cast<int>(feature.unit.size()), feature.unit.data(), feature.low,
                    feature.high, feature.pooled ? 1 : 0);
      add(line);
    }
  }
  return hash;
}

}  // namespace dynamix
