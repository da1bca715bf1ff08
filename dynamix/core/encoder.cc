#include "dynamix/core/encoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/features.h"

namespace dynamix {
namespace {

// Weight of the newest window in a smoothed speed, which must follow a slowdown within a round or
// two.
constexpr double kSpeedWeight = 0.7;
// Loss and accuracy are much noisier, the more so the shorter the window: weight of the newest
// kSpan iterations. Gains and slopes are per kSpan iterations too, so that a state does not depend
// on how many of them a window has.
constexpr double kTrainingWeight = 0.3;
constexpr double kSpan = 20;
// Relative changes of a batch below this are rounding, not a decision.
constexpr double kSmallestChange = 0.02;

bool Positive(double value) { return std::isfinite(value) && value > 0; }

double Log2Ratio(double over, double under) {
  return Positive(over) && Positive(under) ? std::log2(over / under) : kMissing;
}

double Share(double part, double whole) {
  return Positive(whole) && part >= 0 ? part / whole : kMissing;
}

double AgeFeature(int age) { return age / (age + 4.0); }

float Clip(double value, const Feature& feature) {
  if (IsMissing(value)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::clamp(value, feature.low, feature.high));
}

double MeanBatch(const Round& round) {
  const int active = round.ActiveCount();
  return active > 0 ? round.GlobalBatch() / active : 0;
}

double MeanStart(const Round& round) {
  double sum = 0;
  for (const RoundEntry& entry : round.entries) sum += entry.active ? entry.start_batch : 0;
  const int active = round.ActiveCount();
  return active > 0 ? sum / active : 0;
}

double MeanComputeMs(const Round& round) {
  return MeanOver(round, [](const Report& r) { return r.compute_ms; });
}

double MeanIterationMs(const Round& round) {
  return MeanOver(round, [](const Report& r) { return r.iteration_ms; });
}

// What every worker's features are compared with.
struct Peers {
  explicit Peers(const Round& round)
      : compute_ms(MeanComputeMs(round)),
        delivery_mbps(MeanOver(round, [](const Report& r) { return r.network.delivery_mbps; })) {}
  double compute_ms, delivery_mbps;
};

// The part of a local row that a report says.
void EncodeReport(const Report& report, const Peers& peers, std::span<double> row) {
  const NetworkReport& network = report.network;
  const HostReport& host = report.host;
  row[kComputeRatio] = Log2Ratio(report.compute_ms, peers.compute_ms);
  row[kComputeShare] = Share(report.compute_ms, report.iteration_ms);
  row[kWaitShare] = Share(report.wait_ms, report.iteration_ms);
  row[kCommunicationShare] = Share(report.communication_ms, report.iteration_ms);
  row[kRetransmission] = network.retransmission_ratio;
  row[kRttInflation] = Log2Ratio(network.smoothed_rtt_us, network.minimum_rtt_us);
  row[kDeliveryRatio] = Log2Ratio(network.delivery_mbps, peers.delivery_mbps);
  row[kCpuUse] = host.cpu_use;
  row[kCpuThrottled] = host.cpu_throttled;
  row[kCpuPressure] = host.cpu_pressure;
  row[kMemoryHeadroom] = 1 - Share(host.memory_used_bytes, host.memory_limit_bytes);
}

// The part of the global row that a job is configured with.
void EncodeSettings(const Round& round, std::span<double> row) {
  row[kRuleLinear] = round.rule == LearningRateRule::kLinear;
  row[kRuleSqrt] = round.rule == LearningRateRule::kSqrt;
  row[kRuleAdaScale] = round.rule == LearningRateRule::kAdaScale;
  // Most of a warm-up's run is its cosine; the rising rate itself is in learning_rate.
  row[kScheduleCosine] = round.schedule == Schedule::kCosine || round.schedule == Schedule::kWarmup;
  row[kScheduleStep] = round.schedule == Schedule::kStep;
  row[kAdaptive] = round.adaptive;
}

// Mean, largest and spread over the active workers of every local feature that is pooled.
std::vector<float> PooledColumns(const Round& round, const std::vector<float>& local) {
  std::vector<float> columns;
  const int width = LocalWidth();
  for (int f = 0; f < kLocalFeatureCount; ++f) {
    if (!LocalFeatures()[f].pooled) continue;
    double sum = 0, squares = 0, largest = -std::numeric_limits<double>::infinity();
    int count = 0;
    for (std::size_t i = 0; i < round.entries.size(); ++i) {
      const double x = local[i * width + f];
      if (!round.entries[i].active || IsMissing(x)) continue;
      sum += x;
      squares += x * x;
      largest = std::max(largest, x);
      ++count;
    }
    if (count == 0) {
      columns.insert(columns.end(), 3, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const double mean = sum / count;
    columns.push_back(static_cast<float>(mean));
    columns.push_back(static_cast<float>(largest));
    columns.push_back(static_cast<float>(std::sqrt(std::max(0.0, squares / count - mean * mean))));
  }
  return columns;
}

double Heterogeneity(const Round& round) {
  double slowest = kMissing;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.Reported() || IsMissing(entry.report->compute_ms)) continue;
    slowest =
        IsMissing(slowest) ? entry.report->compute_ms : std::max(slowest, entry.report->compute_ms);
  }
  return Log2Ratio(slowest, MeanComputeMs(round));
}

double TierFeature(const Round& round) {
  return MeanOver(round, [](const Report& r) {
    return static_cast<int>(r.network.tier) / static_cast<double>(NetworkTier::kEbpf);
  });
}

}  // namespace

void Encoder::Reset() {
  workers_.clear();
  job_ = {};
  landmarks_ = {};
}

States Encoder::Encode(const Round& round) {
  DYNAMIX_CHECK(workers_.size() <= round.entries.size(), "workers keep their slots");
  Remember(round);
  States states;
  states.landmarks = landmarks_.Find(round);
  const std::vector<float> global = GlobalRow(round, states.landmarks);
  states.workers = static_cast<int>(round.entries.size());
  states.shares = Shares(round);
  states.local = LocalRows(round, states.shares, global);
  states.team = global;
  const std::vector<float> pooled = PooledColumns(round, states.local);
  states.team.insert(states.team.end(), pooled.begin(), pooled.end());
  return states;
}

std::vector<float> Encoder::GlobalRow(const Round& round, const Landmarks& landmarks) const {
  std::array<double, kGlobalFeatureCount> row;
  row.fill(kMissing);
  EncodeSettings(round, row);
  EncodeTraining(round, row);
  EncodeTeam(round, landmarks, row);
  std::vector<float> clipped(kGlobalFeatureCount);
  for (int f = 0; f < kGlobalFeatureCount; ++f) clipped[f] = Clip(row[f], GlobalFeatures()[f]);
  return clipped;
}

void Encoder::EncodeTraining(const Round& round, std::span<double> row) const {
  const auto mean = [&round](double TrainingReport::*field) {
    return MeanOver(round, [field](const Report& r) { return r.training.*field; });
  };
  const double global_batch = round.GlobalBatch();
  if (global_batch > 0) row[kNoiseToBatch] = job_.log_noise - std::log2(global_batch);
  row[kAccuracy] = mean(&TrainingReport::accuracy);
  row[kAccuracyGain] = job_.accuracy_gain;
  row[kAccuracySpread] = mean(&TrainingReport::accuracy_spread);
  row[kLossSlope] = job_.loss_slope;
  if (Positive(job_.promised)) row[kStepEfficiency] = std::asinh(job_.loss_fall / job_.promised);
  row[kGradientVariability] =
      Share(mean(&TrainingReport::gradient_norm_spread), mean(&TrainingReport::gradient_norm));
  row[kLearningRate] = Log2Ratio(mean(&TrainingReport::learning_rate), round.base_learning_rate);
  row[kProgress] = mean(&TrainingReport::progress);
  row[kTargetGap] = IsMissing(round.target_accuracy)
                        ? Log2Ratio(job_.loss, round.target_loss)
                        : Log2Ratio(1 - job_.accuracy, 1 - round.target_accuracy);
}

void Encoder::EncodeTeam(const Round& round, const Landmarks& landmarks,
                         std::span<double> row) const {
  const double global_batch = round.GlobalBatch();
  row[kHeterogeneity] = Heterogeneity(round);
  row[kIterationGrowth] = Log2Ratio(MeanIterationMs(round), job_.iteration_ms);
  row[kTimeAtTwice] = std::log2(landmarks.time_at_twice);
  row[kTimeAtHalf] = std::log2(landmarks.time_at_half);
  row[kMeanGrowth] = Log2Ratio(MeanBatch(round), MeanStart(round));
  row[kBaseRatio] = Log2Ratio(global_batch, round.base_batch);
  row[kGoodputGap] = Log2Ratio(landmarks.goodput, global_batch);
  row[kSoonestGap] = Log2Ratio(landmarks.soonest, global_batch);
  row[kTeamLastChange] = job_.batch.last_change;
  row[kTeamChangeAge] = AgeFeature(job_.batch.change_age);
  row[kNetworkTier] = TierFeature(round);
}

std::vector<float> Encoder::LocalRows(const Round& round, const std::vector<double>& shares,
                                      const std::vector<float>& global) const {
  const Peers peers(round);
  const double global_batch = round.GlobalBatch();
  std::vector<float> rows;
  rows.reserve(round.entries.size() * LocalWidth());
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    std::array<double, kLocalFeatureCount> row;
    row.fill(kMissing);
    row[kBatchGrowth] = Log2Ratio(entry.batch, entry.start_batch);
    row[kShareGap] = Log2Ratio(shares[i] * global_batch, entry.batch);
    row[kAtLowest] = entry.batch <= entry.bounds.lowest();
    row[kAtHighest] = entry.batch >= entry.bounds.highest();
    row[kLastChange] = workers_[i].batch.last_change;
    row[kChangeAge] = AgeFeature(workers_[i].batch.change_age);
    if (entry.Reported()) EncodeReport(*entry.report, peers, row);
    for (int f = 0; f < kLocalFeatureCount; ++f) rows.push_back(Clip(row[f], LocalFeatures()[f]));
    rows.insert(rows.end(), global.begin(), global.end());
  }
  return rows;
}

void Encoder::BatchMemory::Remember(double now) {
  ++change_age;
  if (batch > 0 && now > 0) {
    if (std::abs(now / batch - 1) < kSmallestChange) return;
    last_change = std::log2(now / batch);
  }
  batch = now;
  change_age = 0;
}

void Encoder::Remember(const Round& round) {
  workers_.resize(round.entries.size());
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    workers_[i].batch.Remember(entry.batch);
    if (entry.Reported() && Positive(entry.report->compute_ms))
      workers_[i].samples_per_ms =
          Smooth(workers_[i].samples_per_ms, entry.report->local_batch / entry.report->compute_ms,
                 kSpeedWeight);
  }
  job_.batch.Remember(MeanBatch(round));
  if (IsMissing(job_.iteration_ms)) job_.iteration_ms = MeanIterationMs(round);
  RememberTraining(round);
}

void Encoder::RememberTraining(const Round& round) {
  const auto mean = [&round](auto value) { return MeanOver(round, value); };
  const double spans = mean([](const Report& r) { return r.iterations; }) / kSpan;
  if (!Positive(spans)) return;
  const double weight = 1 - std::pow(1 - kTrainingWeight, spans);
  const auto smooth = [weight](double& old, double fresh) { old = Smooth(old, fresh, weight); };

  const double last_loss = job_.loss, last_accuracy = job_.accuracy;
  smooth(job_.loss, mean([](const Report& r) { return r.training.loss; }));
  smooth(job_.accuracy, mean([](const Report& r) { return r.training.accuracy; }));
  if (Positive(last_loss) && Positive(job_.loss)) {
    smooth(job_.loss_slope, (last_loss - job_.loss) / last_loss / spans);
    smooth(job_.loss_fall, (last_loss - job_.loss) / spans);
  }
  smooth(job_.accuracy_gain, (job_.accuracy - last_accuracy) / spans);

  const double noise = mean([](const Report& r) { return r.training.noise_scale; });
  smooth(job_.log_noise, Positive(noise) ? std::log2(noise) : kMissing);
  const double promised = mean([](const Report& r) {
    const TrainingReport& t = r.training;
    return kSpan * t.learning_rate * t.gradient_norm * t.gradient_norm;
  });
  smooth(job_.promised, Positive(promised) ? promised : kMissing);
}

std::vector<double> Encoder::Shares(const Round& round) const {
  double known = 0;
  int known_count = 0, active = 0;
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    if (!round.entries[i].active) continue;
    ++active;
    if (!Positive(workers_[i].samples_per_ms)) continue;
    known += workers_[i].samples_per_ms;
    ++known_count;
  }
  // A worker nobody has measured yet counts as an average one.
  const double unknown = known_count > 0 ? known / known_count : 1;
  const double sum = known + unknown * (active - known_count);
  std::vector<double> shares(round.entries.size(), 0);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!round.entries[i].active) continue;
    const double speed = workers_[i].samples_per_ms;
    shares[i] = (Positive(speed) ? speed : unknown) / sum;
  }
  return shares;
}

}  // namespace dynamix
