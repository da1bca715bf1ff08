// The features of a state: what each column of a row is. The one list; everything else derives from
// it.
//
// A local row holds the worker's own features, then the global ones. A team row holds the global
// ones, then the mean, maximum and spread over workers of each pooled local feature, so its width
// does not depend on the number of workers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dynamix {

enum class FeatureFamily { kBatch, kNetwork, kSystem, kStatistics };
std::string_view Name(FeatureFamily family);

struct Feature {
  std::string_view name;
  std::string_view unit;  // "log2" of a ratio, "share", "ratio", "flag", "rounds"
  double low, high;       // values are clipped to this range
  FeatureFamily family;
  bool pooled;  // local features only: enters the team row
  std::string_view meaning;
};

// Order of the local features; the tables in features.cc follow it.
enum LocalFeature : int {
  kBatchGrowth,
  kShareGap,
  kComputeRatio,
  kComputeShare,
  kWaitShare,
  kCommunicationShare,
  kRetransmission,
  kRttInflation,
  kDeliveryRatio,
  kCpuUse,
  kCpuThrottled,
  kCpuPressure,
  kMemoryHeadroom,
  kAtLowest,
  kAtHighest,
  kLastChange,
  kChangeAge,
  kLocalFeatureCount
};

enum GlobalFeature : int {
  kNoiseToBatch,
  kAccuracy,
  kAccuracyGain,
  kAccuracySpread,
  kLossSlope,
  kStepEfficiency,
  kGradientVariability,
  kLearningRate,
  kProgress,
  kTargetGap,
  kRuleLinear,
  kRuleSqrt,
  kRuleAdaScale,
  kScheduleCosine,
  kScheduleStep,
  kAdaptive,
  kHeterogeneity,
  kIterationGrowth,
  kTimeAtTwice,
  kTimeAtHalf,
  kMeanGrowth,
  kBaseRatio,
  kGoodputGap,
  kSoonestGap,
  kTeamLastChange,
  kTeamChangeAge,
  kNetworkTier,
  kGlobalFeatureCount
};

std::span<const Feature> LocalFeatures();
std::span<const Feature> GlobalFeatures();

int LocalWidth();
int TeamWidth();

// One per column of a row.
struct Column {
  std::string name;  // "wait_share", in team rows "wait_share.max"
  FeatureFamily family;
};
std::vector<Column> LocalColumns();
std::vector<Column> TeamColumns();

// FNV-1a over names, units, ranges, pooling and order: a policy file made for another list is
// refused.
std::uint64_t FeatureHash();

}  // namespace dynamix
