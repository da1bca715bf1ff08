// Ranges. b0 = base batch / workers, c0 = compute of b0 samples on a speed-1 device, log: drawn
// log-uniformly. In brackets [[ ]]: what the held-out distribution draws instead.
//
//   workers           [2, 32] log, or as asked
//   speeds            40 % equal, 30 % two kinds, 30 % spread; up to 6 [[8]] times apart, log
//   overhead / c0     [0.03, 10] [[20]] log
//   exchange / c0     [0.03, 60] [[100]] log, of which latency 1 to 30 %; 80 % rings
//   saturation        ramp / b0 [0.02, 1], spill batch / b0 [0.5, 16], spill [0.05, 1], all log
//   overlap, jitter   [0, 0.8], [0.01, 0.15] [[0.25]]
//   memory / b0       half: unlimited; else [3, 60] log per node
//   loss of a link    70 % none; else [1e-4, 0.02] log on a third of the nodes
//   start / base      30 % 1; else 2^[-4, 5], at most what trains at 4 times the fair rate: no
//                     policy could mend a first window that diverges
//   bounds            lowest 1..8, highest [8, 256] b0 log (miniatures: at most a quarter of the
//                     data, and 2,048, over all workers), granularity 1, 4 or 8
//   events            35 % none; else 1 to 3, each at [0, 0.5] of the run, for [0.02, 0.4] log,
//                     half of them again and again: 60 % slowdown x [1.3, 5] [[8]],
//                     15 % bandwidth x [0.05, 0.6], 10 % loss + [0.002, 0.05], 8 % leave, 7 % join
//   reports           late: 70 % never, else up to 5 %; network tier: 70 % eBPF, else any
//   quadratics        curvature decay [1.4, 2.4] [[1.2, 2.8]], loss decay [-0.3, 1.2],
//                     noise scale [5, 1000] [[2, 4000]] log, noise floor [0.01, 1] log, noise
//                     dimensions [5, 200] log: noise scales and the variability of gradient norms
//                     then look as those of miniatures do
//                     a third of them, where fitted ones are given, near one of those: constants
//                     x [0.67, 1.5] log
//   their optimizer   half SGD with momentum 0, 0.5, 0.9 or 0.95, half Adam; any rule, any
//                     schedule; base batch [16, 1024] log, at least 2 per worker; rate [0.1, 1.5]
//                     log of FairRate
//   miniatures        MiniatureRanges; [[prototypes too, hidden 6 to 56, label noise to 0.25]]
//   run               [min_iterations, max_iterations] at the base batch, log
//   window            as asked, or half of it in every other job
//   target            run_share [0.15, 0.95]; redrawn when the curve goes flat before 0.1
//   named target      35 % of the jobs tell the policy the accuracy at their target, 35 % the loss
//   budget            3 reference times to target
#include "dynamix/simulator/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/simulator/miniatures/ranges.h"

namespace dynamix {
namespace {

constexpr int kMostDraws = 30;
constexpr double kFittedShare = 1.0 / 3;
constexpr double kLeastImprovement = 0.25;  // of the initial held-out loss
constexpr double kEarliestTarget = 0.1;     // of the reference run
constexpr double kMostFirstRate = 4;        // times the fair rate, in the first window

int RoundedLog(Rng& rng, double low, double high) {
  return static_cast<int>(std::lround(rng.LogUniform(low, high)));
}

template <typename T, std::size_t kCount>
T Choose(Rng& rng, const std::array<T, kCount>& choices) {
  return choices[rng.Below(kCount)];
}

class TaskDrawer {
 public:
  TaskDrawer(Rng rng, const DistributionOptions& options)
      : rng_(rng), options_(options), held_out_(options.kind == DistributionKind::kHeldOut) {}

  // Empty when the draw is not worth a task.
  std::optional<Task> Draw() {
    workers_ = RoundedLog(rng_, options_.min_workers - 0.49, options_.max_workers + 0.49);
    workers_ = std::clamp(workers_, options_.min_workers, options_.max_workers);
    const bool miniature = rng_.Uniform() < options_.miniature_share;
    Workload workload = miniature ? DrawMiniature() : DrawQuadratic();
    base_local_ = workload.optimizer.base_batch / workers_;
    DrawCost(workload.cost);
    largest_batch_ = LargestBatch(workload);
    const Scenario scenario = DrawScenario(workload);
    const std::uint64_t seed = rng_.Next();
    workload.target.run_share = rng_.Uniform(0.15, 0.95);
    const int halves = rng_.Uniform() < 0.5 ? 1 : 2;
    Task task = MakeTask({.scenario = scenario,
                          .workload = workload,
                          .workers = workers_,
                          .seed = seed,
                          .window = std::max(1, options_.window_iterations * halves / 2)},
                         options_.pools);
    NameTarget(task.limits);
    return Accept(std::move(task));
  }

 private:
  // Not every user names a target.
  void NameTarget(JobLimits& limits) {
    const double named = rng_.Uniform();
    if (named < 0.65) limits.named_accuracy = 0;
    if (named < 0.35) limits.named_loss = limits.target_loss;
  }

  // Nobody trains with a sample per worker.
  double LeastBase() const { return std::min(512.0, std::max(16.0, 2.0 * workers_)); }
  // A quarter of a miniature's data: what is called a global batch there is nearly the whole
  // gradient. And no window may cost as much as a hundred others.
  static double LargestBatch(const Workload& workload) {
    const auto* miniature = std::get_if<MiniatureOptions>(&workload.convergence);
    return miniature != nullptr ? std::min(miniature->training_samples / 4.0, 2048.0) : 1e9;
  }
  double Wider(double usual, double held_out) const { return held_out_ ? held_out : usual; }

  OptimizerOptions DrawOptimizer() {
    OptimizerOptions optimizer;
    optimizer.kind = rng_.Uniform() < 0.5 ? OptimizerKind::kAdam : OptimizerKind::kSgd;
    optimizer.momentum = optimizer.adaptive() ? 0.9 : Choose(rng_, std::array{0.0, 0.5, 0.9, 0.95});
    optimizer.base_batch = RoundedLog(rng_, LeastBase(), 1024);
    optimizer.rule = static_cast<LearningRateRule>(rng_.Below(kLearningRateRuleCount));
    optimizer.schedule = static_cast<Schedule>(rng_.Below(kScheduleCount));
    optimizer.planned_samples =
        rng_.LogUniform(options_.min_iterations, options_.max_iterations) * optimizer.base_batch;
    return optimizer;
  }

  Workload DrawQuadratic() {
    Workload workload;
    workload.name = "random quadratic";
    const QuadraticOptions quadratic = !options_.fitted.empty() && rng_.Uniform() < kFittedShare
                                           ? DrawNearFitted()
                                           : DrawFreeQuadratic();
    workload.optimizer = DrawOptimizer();
    rate_factor_ = rng_.LogUniform(0.1, 1.5);
    workload.optimizer.learning_rate = rate_factor_ * FairRate(quadratic, workload.optimizer);
    workload.convergence = quadratic;
    return workload;
  }

  // Near one of those fitted to real runs: what noise and curvature are is known to a factor only.
  QuadraticOptions DrawNearFitted() {
    QuadraticOptions quadratic = options_.fitted[rng_.Below(options_.fitted.size())];
    for (double* field : {&quadratic.curvature, &quadratic.noise_scale, &quadratic.noise_floor,
                          &quadratic.irreducible_loss, &quadratic.held_out_gap})
      *field *= rng_.LogUniform(0.67, 1.5);
    quadratic.noise_floor = std::min(quadratic.noise_floor, 1.0);
    quadratic.noise_dimensions = rng_.LogUniform(5, 200);
    return quadratic;
  }

  QuadraticOptions DrawFreeQuadratic() {
    QuadraticOptions quadratic;
    quadratic.curvature_decay = rng_.Uniform(Wider(1.4, 1.2), Wider(2.4, 2.8));
    quadratic.loss_decay = rng_.Uniform(-0.3, 1.2);
    quadratic.initial_loss = rng_.Uniform(0.7, 4.6);
    quadratic.noise_scale = rng_.LogUniform(Wider(5, 2), Wider(1000, 4000));
    quadratic.noise_floor = rng_.LogUniform(0.01, 1);
    quadratic.noise_dimensions = rng_.LogUniform(5, 200);
    quadratic.irreducible_loss = quadratic.initial_loss * rng_.LogUniform(0.005, 0.3);
    quadratic.held_out_gap = quadratic.initial_loss * rng_.LogUniform(0.005, 0.2);
    quadratic.best_accuracy = rng_.Uniform(0.6, 0.99);
    quadratic.accuracy_exponent = rng_.Uniform(0.5, 1.2);
    return quadratic;
  }

  // SGD: the effective rate 1 / h_1, or that at which noise undoes half of a first step, whichever
  // is lower. Adam: the rate that walks the typical distance in a fifth of the run.
  static double FairRate(const QuadraticOptions& q, const OptimizerOptions& optimizer) {
    double trace = 0, squares = 0, loss_parts = 0, distances = 0;
    for (int d = 1; d <= q.dimensions; ++d) {
      const double h = q.curvature * std::pow(d, -q.curvature_decay);
      trace += h;
      squares += h * h;
      loss_parts += std::pow(d, -q.loss_decay);
      distances += std::pow(d, -q.loss_decay) / h;
    }
    if (optimizer.adaptive()) {
      const double typical = std::sqrt(2 * q.initial_loss / loss_parts * distances / q.dimensions);
      return 5 * typical * optimizer.base_batch / optimizer.planned_samples;
    }
    const double noisy = optimizer.base_batch * trace / (q.noise_scale * squares);
    return (1 - optimizer.momentum) * std::min(1 / q.curvature, noisy);
  }

  Workload DrawMiniature() {
    MiniatureRanges ranges;
    ranges.planned_iterations = {static_cast<double>(options_.min_iterations),
                                 static_cast<double>(options_.max_iterations)};
    ranges.base_batch.low = LeastBase();
    if (held_out_) {
      ranges.families.push_back(MiniatureFamily::kPrototypes);
      ranges.hidden = {6, 56};
      ranges.label_noise = {0, 0.25};
      ranges.spectrum = {0.4, 1.4};
    }
    if (!options_.families.empty()) ranges.families = options_.families;
    Workload workload;
    workload.name = "random miniature";
    MiniatureOptions options = RandomMiniature(rng_, ranges);
    options.task_seed &= 0x7fffffff;  // what a workload file can say
    workload.optimizer = options.optimizer;
    rate_factor_ = options.optimizer.learning_rate / ReferenceLearningRate(options);
    workload.convergence = options;
    return workload;
  }

  void DrawCost(CostOptions& cost) {
    cost.sample_ms = rng_.LogUniform(0.05, 20);
    cost.gradient_bytes = rng_.LogUniform(2e5, 1e8);
    cost.overlap = rng_.Uniform(0, 0.8);
    cost.saturation.ramp_batch = base_local_ * rng_.LogUniform(0.02, 1);
    cost.saturation.spill_batch = base_local_ * rng_.LogUniform(0.5, 16);
    cost.saturation.spill = rng_.LogUniform(0.05, 1);
    cost.memory_fixed_bytes = 4e8;
    cost.memory_per_sample_bytes = 1e6;
  }

  Scenario DrawScenario(const Workload& workload) {
    Scenario scenario;
    scenario.name = "random";
    scenario.workers = workers_;
    scenario.bounds.min = Choose(rng_, std::array{1, 2, 4, 8});
    while (scenario.bounds.min > base_local_ && scenario.bounds.min > 1) scenario.bounds.min /= 2;
    scenario.bounds.granularity = base_local_ < 16 ? 1 : Choose(rng_, std::array{1, 1, 1, 1, 4, 8});
    const double largest =
        std::max(base_local_ * rng_.LogUniform(8, 256), 8.0 * scenario.bounds.min);
    const double most = std::max({largest_batch_ / workers_, base_local_, 8.0});
    scenario.bounds.max =
        static_cast<int>(std::min(std::ceil(std::min(largest, most) / 8) * 8, 65536.0));
    scenario.start_batch =
        ClampBatch(base_local_ * DrawStart(workload.optimizer.rule), 0, scenario.bounds);
    scenario.communication =
        rng_.Uniform() < 0.8 ? Communication::kRing : Communication::kParameterServer;
    scenario.late_reports = rng_.Uniform() < 0.7 ? 0 : rng_.Uniform(0, 0.05);
    scenario.network_tier =
        rng_.Uniform() < 0.7 ? NetworkTier::kEbpf : static_cast<NetworkTier>(rng_.Below(5));
    DrawNodes(workload.cost, scenario);
    DrawEvents(scenario);
    return scenario;
  }

  // The start over the base batch.
  double DrawStart(LearningRateRule rule) {
    double start = rng_.Uniform() < 0.3 ? 1 : std::exp2(rng_.Uniform(-4, 5));
    // AdaScale starts as the root does: it does not know the noise yet.
    while (start > 1 &&
           rate_factor_ * LearningRateFactor(rule, start, 1, kMissing) > kMostFirstRate)
      start /= 2;
    return start;
  }

  // Speeds relative to 1; the fastest is 1, so that slower clusters are not just scaled ones.
  std::vector<double> DrawSpeeds() {
    const double kind = rng_.Uniform();
    const double spread = rng_.LogUniform(1.2, Wider(6, 8));
    const double fast_share = rng_.Uniform(0.2, 0.8);
    std::vector<double> speeds;
    for (int i = 0; i < workers_; ++i) {
      if (kind < 0.4) {
        speeds.push_back(1);
      } else if (kind < 0.7) {
        speeds.push_back(rng_.Uniform() < fast_share ? 1 : 1 / spread);
      } else {
        speeds.push_back(1 / rng_.LogUniform(1, spread));
      }
    }
    return speeds;
  }

  void DrawNodes(const CostOptions& cost, Scenario& scenario) {
    const double compute_ms = base_local_ * cost.sample_ms;
    const double exchange_ms = compute_ms * rng_.LogUniform(0.03, Wider(60, 100));
    const double latency_part = rng_.Uniform(0.01, 0.3);
    const bool ring = scenario.communication == Communication::kRing;
    const double n = std::max(workers_, 2);
    const double exchanges = ring ? 2 * (n - 1) / n : 2;
    const double steps = ring ? 2 * (n - 1) : 2;
    Node node;
    node.overhead_ms = compute_ms * rng_.LogUniform(0.03, Wider(10, 20));
    node.latency_ms = std::clamp(latency_part * exchange_ms / steps, 0.02, 50.0);
    node.bandwidth_mbps = std::clamp(
        exchanges * cost.gradient_bytes * 8e-3 / ((1 - latency_part) * exchange_ms), 1.0, 1e6);
    scenario.server_mbps = std::min(1e6, node.bandwidth_mbps * n);
    node.jitter = rng_.Uniform(0.01, Wider(0.15, 0.25));
    const bool limited = rng_.Uniform() < 0.5, lossy = rng_.Uniform() < 0.3;
    scenario.nodes.clear();
    for (const double speed : DrawSpeeds()) {
      Node own = node;
      own.speed = speed;
      own.memory_gb =
          limited ? 0.4 + 1e-3 * std::max(8.0, base_local_ * rng_.LogUniform(3, 60)) : 4096;
      own.loss = lossy && rng_.Uniform() < 0.34 ? rng_.LogUniform(1e-4, 0.02) : 0;
      scenario.nodes.push_back({1, own});
    }
  }

  void DrawEvents(Scenario& scenario) {
    if (rng_.Uniform() < 0.35) return;
    const int count = 1 + static_cast<int>(rng_.Below(3));
    for (int i = 0; i < count; ++i) scenario.events.push_back(DrawEvent());
  }

  Event DrawEvent() {
    Event event;
    const double kind = rng_.Uniform();
    event.target = static_cast<EventTarget>(rng_.Below(4));
    event.share = rng_.Uniform(0.05, 0.6);
    event.at = rng_.Uniform(0, 0.5);
    event.duration = rng_.LogUniform(0.02, 0.4);
    event.every = rng_.Uniform() < 0.5 ? event.duration * rng_.Uniform(1.3, 4) : 0;
    if (kind < 0.6) {
      event.kind = EventKind::kSlowdown;
      event.factor = rng_.LogUniform(1.3, Wider(5, 8));
    } else if (kind < 0.75) {
      event.kind = EventKind::kBandwidth;
      event.factor = rng_.LogUniform(0.05, 0.6);
    } else if (kind < 0.85) {
      event.kind = EventKind::kLoss;
      event.factor = rng_.LogUniform(0.002, 0.05);
    } else {
      event.kind = kind < 0.93 ? EventKind::kLeave : EventKind::kJoin;
      event.share = rng_.Uniform(0.05, 0.4);
      event.factor = 1;
    }
    return event;
  }

  std::optional<Task> Accept(Task task) {
    const ReferenceCurve& curve = task.reference;
    if (curve.final_loss() > (1 - kLeastImprovement) * curve.initial_loss()) return std::nullopt;
    task.limits.seconds = 3 * task.reference_seconds;
    if (task.reference_seconds < kEarliestTarget * curve.seconds()) return std::nullopt;
    return task;
  }

  Rng rng_;
  const DistributionOptions& options_;  // outlives the drawer, which lives in RandomTask's frame
  const bool held_out_;
  int workers_ = 0;
  double base_local_ = 0;
  double rate_factor_ = 1;    // learning rate over the fair one
  double largest_batch_ = 0;  // global
};

}  // namespace

void DistributionOptions::Validate() const {
  RequireInRange("max_workers", max_workers, 1, 4096);
  RequireInRange("min_workers", min_workers, 1, max_workers);
  RequireInRange("miniature_share", miniature_share, 0.0, 1.0);
  RequireInRange("window_iterations", window_iterations, 1, 100000);
  RequireInRange("max_iterations", max_iterations, 100, 10000000);
  RequireInRange("min_iterations", min_iterations, 100, max_iterations);
}

Task RandomTask(Rng& rng, const DistributionOptions& options) {
  options.Validate();
  const Rng own(rng.Next());
  TaskDrawer drawer(own.Fork(1 + static_cast<std::uint64_t>(options.kind)), options);
  for (int draw = 0; draw < kMostDraws; ++draw) {
    std::optional<Task> task = drawer.Draw();
    if (task) return *std::move(task);
  }
  DYNAMIX_CHECK(false, "one of many random tasks is worth learning from");
  return *drawer.Draw();
}

}  // namespace dynamix
