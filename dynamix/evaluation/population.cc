// What is drawn. B base batch, N workers, b = B / N a base share, c its compute on a node of speed
// 1; log: drawn log-uniformly; even: one draw in each of as many equal slices as there are jobs.
//
//   model, data        trained_models.cc, each model equally often
//   optimizer          those the model has a tuned rate for
//   learning rate      tuned at B; a quarter of it; twice
//   rule, schedule     every one of them
//   workers            4, 8, 16, 32
//   start              B; B times 2, 4 or 8, at most N; B times or over 4, 8 or 16
//                      never so that the first window trains at more than 4 times the tuned rate,
//                      or with less than one sample per worker: no policy could mend that
//   bounds             1 to 32 b
//   window             kWindow iterations
//   c                  20 to 200 ms, log
//   exchange / c       network bound: 4 to 60, else 0.03 to 4; log, even; 1 to 30 % of it latency
//   overhead / c       0.03 to 1, log
//   saturation         ramp / b 0.02 to 1, spill batch / b 0.5 to 16, spill 0.05 to 1; all log
//   overlap, jitter    0 to 0.8; 0.01 to 0.15
//   speeds             equal; two kinds 2 to 6 times apart, a quarter to three quarters fast;
//                      spread 2.5 to 6 times apart, log; contended, leave and join: equal or two
//                      kinds
//   contention         1 or 2 slowdowns of 2 to 5 times, of a quarter or half of the nodes, for 0.05
//                      to 0.25 of the run, again every 0.3 to 0.6
//   loss               on a third of the nodes, 0.1 to 3 %, which cuts their rate 2 to 6 times
//   leave and join     a quarter leaves for 0.1 to 0.3 of the run, a quarter joins at 0.15 to 0.4
//   target             what the reference has reached after 0.3 to 0.8 of its run, even; accuracy
//                      or loss; named to the policy or not
//   budget             judge.h; at most kSampleBudget times the planned samples
#include "dynamix/evaluation/population.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "dynamix/core/check.h"
#include "dynamix/core/rng.h"
#include "dynamix/evaluation/trained_models.h"

namespace dynamix {
namespace {

constexpr double kMostFirstRate = 4;  // times the tuned rate, in the first window
constexpr double kSampleBudget = 3;
constexpr double kWeightDecay = 0.05;  // of AdamW
// Of the run: events are drawn so far; the judge ends jobs sooner.
constexpr double kTimeBudget = 8;
// Iterations: half of what live jobs have, so that jobs this short still have 50 windows and more.
constexpr int kWindow = 5;

struct Draws {
  Population population;
  const char* suite;
  const char* prefix;
  int jobs;
  std::uint64_t seed;
  std::uint64_t first_job_seed;
};
// The jobs' own seeds are apart from each other and from what people type.
constexpr std::array<Draws, 3> kDraws = {
    {{Population::kValidation, "validation-jobs", "validation-", 42, 101, 100001},
     {Population::kJudge, "judge", "judge-", 63, 202, 200001},
     {Population::kMoreValidation, "more-validation-jobs", "more-", 63, 303, 300001}}};

const Draws& DrawsOf(Population population) { return kDraws[static_cast<int>(population)]; }

// Each value equally often, to within one, in random order.
template <typename T>
std::vector<T> Deal(Rng& rng, std::vector<T> values, int count) {
  std::vector<T> dealt;
  const auto shuffle = [&rng](std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.Below(i)]);
  };
  shuffle(values);  // so that the values that appear once more are not always the same
  for (int i = 0; i < count; ++i) dealt.push_back(values[i % values.size()]);
  shuffle(dealt);
  return dealt;
}

template <typename Enum>
std::vector<Enum> AllOf(int count) {
  std::vector<Enum> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<Enum>(i));
  return values;
}

// One number in each of `count` equal slices of [0, 1), in random order.
std::vector<double> DealEvenly(Rng& rng, int count) {
  std::vector<int> slices(count);
  std::iota(slices.begin(), slices.end(), 0);
  std::vector<double> numbers;
  for (const int slice : Deal(rng, slices, count))
    numbers.push_back((slice + rng.Uniform()) / count);
  return numbers;
}

double LogBetween(double low, double high, double share) {
  return low * std::pow(high / low, share);
}

class Drawer {
 public:
  explicit Drawer(const Draws& draws)
      : draws_(draws),
        rng_(draws.seed),
        count_(draws.jobs),
        models_(DealModels(rng_, count_)),
        rates_(Deal(rng_, AllOf<RateKind>(kRateKindCount), count_)),
        rules_(Deal(rng_, AllOf<LearningRateRule>(kLearningRateRuleCount), count_)),
        schedules_(Deal(rng_, AllOf<Schedule>(kScheduleCount), count_)),
        clusters_(Deal(rng_, AllOf<ClusterKind>(kClusterKindCount), count_)),
        starts_(Deal(rng_, AllOf<StartKind>(kStartKindCount), count_)),
        workers_(Deal(rng_, std::vector<int>{4, 8, 16, 32}, count_)),
        by_loss_(Deal(rng_, std::vector<int>{0, 1}, count_)),
        named_(Deal(rng_, std::vector<int>{0, 1}, count_)),
        optimizers_(DealEvenly(rng_, count_)),
        ratios_(DealRatios()),
        target_shares_(DealEvenly(rng_, count_)) {
    for (int i = 0; i < count_; ++i) MendStart(i);
  }

  std::vector<PopulationJob> Draw() {
    std::vector<PopulationJob> jobs;
    for (int i = 0; i < count_; ++i) jobs.push_back(DrawJob(i));
    return jobs;
  }

 private:
  // Models by name, then in turn those that share it.
  static std::vector<const TrainedModel*> DealModels(Rng& rng, int count) {
    std::vector<std::vector<const TrainedModel*>> by_name;
    for (const TrainedModel& trained : TrainedModels()) {
      if (by_name.empty() || by_name.back().front()->model.name != trained.model.name)
        by_name.emplace_back();
      by_name.back().push_back(&trained);
    }
    std::vector<int> names(by_name.size()), turns(by_name.size());
    std::iota(names.begin(), names.end(), 0);
    std::vector<const TrainedModel*> models;
    for (const int name : Deal(rng, names, count))
      models.push_back(by_name[name][turns[name]++ % by_name[name].size()]);
    return models;
  }

  // Even within the jobs that are network bound, and within the others.
  std::vector<double> DealRatios() {
    std::vector<double> ratios(count_);
    for (const bool bound : {false, true}) {
      std::vector<int> jobs;
      for (int i = 0; i < count_; ++i)
        if ((clusters_[i] == ClusterKind::kNetworkBound) == bound) jobs.push_back(i);
      const std::vector<double> shares = DealEvenly(rng_, static_cast<int>(jobs.size()));
      for (std::size_t k = 0; k < jobs.size(); ++k)
        ratios[jobs[k]] = bound ? LogBetween(4, 60, shares[k]) : LogBetween(0.03, 4, shares[k]);
    }
    return ratios;
  }

  // The starts over the base batch that job i may have.
  std::vector<double> StartScales(int i) const {
    if (starts_[i] == StartKind::kTuned) return {1};
    const bool bad = starts_[i] == StartKind::kBad;
    std::vector<double> scales;
    for (const double scale : bad ? std::vector<double>{1.0 / 16, 1.0 / 8, 1.0 / 4, 4, 8, 16}
                                  : std::vector<double>{2, 4, 8}) {
      if (!bad && scale > workers_[i]) continue;
      if (models_[i]->base_batch / workers_[i] * scale < 1) continue;
      // AdaScale starts as the root does: it does not know the noise yet.
      const double factor = LearningRateFactor(rules_[i], scale, 1, kMissing);
      if (RateFactor(rates_[i]) * factor <= kMostFirstRate) scales.push_back(scale);
    }
    return scales;
  }

  // A job that cannot start as its kind says changes its number of workers with another job.
  void MendStart(int i) {
    for (int j = 0; j < count_ && StartScales(i).empty(); ++j) {
      std::swap(workers_[i], workers_[j]);
      if (StartScales(i).empty() || StartScales(j).empty()) std::swap(workers_[i], workers_[j]);
    }
    DYNAMIX_CHECK(!StartScales(i).empty(), "every job can start as its kind says");
  }

  PopulationJob DrawJob(int i) {
    PopulationJob job;
    job.cluster = clusters_[i];
    job.start = starts_[i];
    job.rate = rates_[i];
    job.target_is_loss = by_loss_[i] != 0;
    job.target_is_named = named_[i] != 0;
    job.spec.workers = workers_[i];
    job.spec.seed = draws_.first_job_seed + i;
    job.spec.window = kWindow;
    DrawWorkload(i, job);
    const std::vector<double> scales = StartScales(i);
    job.start_scale = scales[rng_.Below(scales.size())];
    job.held_out_samples = models_[i]->held_out_samples;
    DrawScenario(i, job);
    job.spec.scenario.Validate();
    job.spec.workload.Validate();
    return job;
  }

  static double RateFactor(RateKind kind) {
    return kind == RateKind::kLow ? 0.25 : kind == RateKind::kHigh ? 2 : 1;
  }

  void DrawWorkload(int i, PopulationJob& job) {
    const TrainedModel& trained = *models_[i];
    Workload& workload = job.spec.workload;
    workload.model = trained.model;
    workload.name = workload.model.name + "_" + workload.model.dataset;
    workload.description = workload.model.name + " on " + workload.model.dataset;
    const TunedRate& rate =
        trained.rates[static_cast<std::size_t>(optimizers_[i] * trained.rates.size())];
    OptimizerOptions& optimizer = workload.optimizer;
    optimizer.kind = rate.kind;
    optimizer.learning_rate = rate.learning_rate * RateFactor(job.rate);
    optimizer.momentum = 0.9;
    if (rate.kind == OptimizerKind::kAdamW) optimizer.weight_decay = kWeightDecay;
    optimizer.base_batch = trained.base_batch;
    optimizer.rule = rules_[i];
    optimizer.schedule = schedules_[i];
    optimizer.planned_samples = trained.planned_samples;
    workload.target.run_share = 0.3 + 0.5 * target_shares_[i];
    DrawCost(job);
  }

  static double BaseShare(const PopulationJob& job) {
    return job.spec.workload.optimizer.base_batch / job.spec.workers;
  }

  void DrawCost(PopulationJob& job) {
    const double share = BaseShare(job);
    CostOptions& cost = job.spec.workload.cost;
    cost.sample_ms = rng_.LogUniform(20, 200) / share;
    // Loss slows a link whose latency is short only when its rate is high: many bytes.
    cost.gradient_bytes = job.cluster == ClusterKind::kLossy ? 2e7 : rng_.LogUniform(2e5, 2e7);
    cost.overlap = rng_.Uniform(0, 0.8);
    cost.saturation.ramp_batch = share * rng_.LogUniform(0.02, 1);
    cost.saturation.spill_batch = share * rng_.LogUniform(0.5, 16);
    cost.saturation.spill = rng_.LogUniform(0.05, 1);
    cost.memory_fixed_bytes = 4e8;
    cost.memory_per_sample_bytes = 1e6;
  }

  void DrawScenario(int i, PopulationJob& job) {
    Scenario& scenario = job.spec.scenario;
    const std::string number = std::to_string(i + 1);
    scenario.name =
        draws_.prefix + std::string(2 - std::min<std::size_t>(2, number.size()), '0') + number;
    scenario.workers = job.spec.workers;
    scenario.start_batch = static_cast<int>(std::lround(BaseShare(job) * job.start_scale));
    scenario.bounds = {.min = 1, .max = static_cast<int>(32 * BaseShare(job))};
    scenario.time_budget = kTimeBudget;
    scenario.sample_budget = kSampleBudget;
    job.exchange_ratio = ratios_[i];
    DrawNodes(job);
    DrawEvents(job);
    scenario.description = "Drawn: " + std::string(Name(job.cluster));
  }

  // The fastest node has speed 1.
  std::vector<double> DrawSpeeds(const PopulationJob& job) {
    const bool mixed =
        (job.cluster == ClusterKind::kContended || job.cluster == ClusterKind::kLeaveJoin) &&
        rng_.Uniform() < 0.5;
    std::vector<double> speeds(job.spec.workers, 1.0);
    if (job.cluster == ClusterKind::kTwoKinds || mixed) {
      const double slow = 1 / rng_.LogUniform(2, 6);
      const double slow_share = rng_.Uniform(0.25, 0.75);
      const auto count =
          static_cast<std::size_t>(std::lround(slow_share * static_cast<double>(speeds.size())));
      std::fill_n(speeds.begin(), std::clamp<std::size_t>(count, 1, speeds.size() - 1), slow);
    } else if (job.cluster == ClusterKind::kSpread) {
      const double spread = rng_.LogUniform(2.5, 6);
      for (double& speed : speeds) speed = 1 / rng_.LogUniform(1, spread);
      speeds.front() = 1;
      speeds.back() = 1 / spread;
    }
    return speeds;
  }

  // Bandwidth and latency at which a ring's exchange takes exchange_ratio times c.
  Node DrawNode(const PopulationJob& job) {
    const double n = job.spec.workers;
    const double compute_ms = BaseShare(job) * job.spec.workload.cost.sample_ms;
    const double exchange_ms = job.exchange_ratio * compute_ms;
    Node node;
    node.overhead_ms = compute_ms * rng_.LogUniform(0.03, 1);
    node.jitter = rng_.Uniform(0.01, 0.15);
    node.memory_gb = 4096;
    const double steps = 2 * (n - 1);
    node.latency_ms = std::max(0.001, rng_.Uniform(0.01, 0.3) * exchange_ms / steps);
    const double kilobits = job.spec.workload.cost.gradient_bytes * 8e-3;
    node.bandwidth_mbps = steps / n * kilobits / (exchange_ms - steps * node.latency_ms);
    return node;
  }

  // Links on which loss cuts the rate `cut` times (Mathis et al. 1997, as the cluster model has it:
  // rate = segment * sqrt(1.5 / loss) / (2 latency)), with exchanges that take as long as before
  // where nothing is lost.
  static void SetLossyLink(const PopulationJob& job, double loss, double cut, Node& node) {
    const double n = job.spec.workers;
    const double steps = 2 * (n - 1);
    const double compute_ms = BaseShare(job) * job.spec.workload.cost.sample_ms;
    const double kilobits = job.spec.workload.cost.gradient_bytes * 8e-3;
    const double latency_kilobits = cut * 1460 * 8e-3 * std::sqrt(1.5 / loss) / 2;
    node.bandwidth_mbps =
        steps * (latency_kilobits + kilobits / n) / (job.exchange_ratio * compute_ms);
    node.latency_ms = latency_kilobits / node.bandwidth_mbps;
  }

  void DrawNodes(PopulationJob& job) {
    Node node = DrawNode(job);
    Node lossy = node;
    if (job.cluster == ClusterKind::kLossy) {
      lossy.loss = rng_.LogUniform(0.001, 0.03);
      SetLossyLink(job, lossy.loss, /*cut=*/rng_.LogUniform(2, 6), node);
      lossy.bandwidth_mbps = node.bandwidth_mbps;
      lossy.latency_ms = node.latency_ms;
    }
    job.spec.scenario.nodes.clear();
    int number = 0;
    for (const double speed : DrawSpeeds(job)) {
      Node own = number++ % 3 == 0 ? lossy : node;
      own.speed = speed;
      job.spec.scenario.nodes.push_back({1, own});
    }
  }

  void DrawEvents(PopulationJob& job) {
    std::vector<Event>& events = job.spec.scenario.events;
    if (job.cluster == ClusterKind::kContended) {
      const int slowdowns = 1 + static_cast<int>(rng_.Below(2));
      for (int k = 0; k < slowdowns; ++k)
        events.push_back({.kind = EventKind::kSlowdown,
                          .target = k == 0 ? EventTarget::kFastest : EventTarget::kRandom,
                          .share = rng_.Uniform() < 0.5 ? 0.25 : 0.5,
                          .at = rng_.Uniform(0.05, 0.3),
                          .duration = rng_.Uniform(0.05, 0.25),
                          .every = rng_.Uniform(0.3, 0.6),
                          .factor = rng_.LogUniform(2, 5)});
    }
    if (job.cluster == ClusterKind::kLeaveJoin) {
      events.push_back({.kind = EventKind::kLeave,
                        .target = EventTarget::kRandom,
                        .share = 0.25,
                        .at = rng_.Uniform(0.05, 0.3),
                        .duration = rng_.Uniform(0.1, 0.3)});
      events.push_back({.kind = EventKind::kJoin,
                        .target = EventTarget::kSpread,
                        .share = 0.25,
                        .at = rng_.Uniform(0.15, 0.4)});
    }
  }

  const Draws& draws_;
  Rng rng_;
  int count_;
  std::vector<const TrainedModel*> models_;
  std::vector<RateKind> rates_;
  std::vector<LearningRateRule> rules_;
  std::vector<Schedule> schedules_;
  std::vector<ClusterKind> clusters_;
  std::vector<StartKind> starts_;
  std::vector<int> workers_, by_loss_, named_;
  std::vector<double> optimizers_, ratios_, target_shares_;
};

template <typename Enum, std::size_t kCount>
std::string_view NameIn(const std::array<std::string_view, kCount>& names, Enum value) {
  return names[static_cast<int>(value)];
}

const char* OptimizerName(const PopulationJob& job) {
  for (const TrainedModel& trained : TrainedModels())
    for (const TunedRate& rate : trained.rates)
      if (rate.kind == job.spec.workload.optimizer.kind) return rate.name;
  return "";
}

}  // namespace

std::string_view Name(Population population) { return DrawsOf(population).suite; }

std::optional<Population> ParsePopulation(std::string_view name) {
  for (const Draws& draws : kDraws)
    if (name == draws.suite) return draws.population;
  return std::nullopt;
}

std::string_view Name(ClusterKind kind) {
  return NameIn(
      std::array<std::string_view, kClusterKindCount>{"quiet", "two kinds", "spread", "contended",
                                                      "network bound", "lossy", "leave and join"},
      kind);
}

std::string_view Name(StartKind kind) {
  return NameIn(
      std::array<std::string_view, kStartKindCount>{"tuned", "scaled out", "badly started"}, kind);
}

std::string_view Name(RateKind kind) {
  return NameIn(
      std::array<std::string_view, kRateKindCount>{"tuned", "4 times too low", "2 times too high"},
      kind);
}

std::vector<PopulationJob> DrawPopulation(Population population) {
  return Drawer(DrawsOf(population)).Draw();
}

std::vector<std::pair<std::string, std::string>> Factors(const PopulationJob& job) {
  const Workload& workload = job.spec.workload;
  return {{"rule", std::string(Name(workload.optimizer.rule))},
          {"start", std::string(Name(job.start))},
          {"cluster", std::string(Name(job.cluster))},
          {"workers", std::to_string(job.spec.workers)},
          {"model", workload.model.name},
          {"data", workload.model.dataset},
          {"optimizer", OptimizerName(job)},
          {"learning rate", std::string(Name(job.rate))},
          {"schedule", std::string(Name(workload.optimizer.schedule))},
          {"target", job.target_is_loss ? "loss" : "accuracy"},
          {"named", job.target_is_named ? "yes" : "no"}};
}

std::vector<ModelOptions> JudgedModels() {
  std::vector<ModelOptions> models;
  for (const TrainedModel& trained : TrainedModels()) models.push_back(trained.model);
  return models;
}

std::vector<std::string> DatasetsOf(const std::vector<PopulationJob>& jobs) {
  std::set<std::string> names;
  for (const PopulationJob& job : jobs) names.insert(job.spec.workload.model.dataset);
  return {names.begin(), names.end()};
}

}  // namespace dynamix
