// Cost. A node of speed s and overhead o computes b samples in o + b sample_ms factor(b) / s, so
// every window gives y(b) = (compute_ms - o) s / b. Windows in which an event slows the worker are
// left out. Of each local batch the median counts; the fit minimises squared log ratios, with a
// weak pull towards the constants it starts from where the batches do not settle them.
//
// Convergence. The quadratic model replays each trace's batches. The fit minimises, averaged over
// the samples of the run,
//
//   w * ( ((accuracy' - accuracy) / 0.01)^2
//       + (ln(held-out loss' / loss) / 0.33)^2
//       + (ln(training loss' / loss) / 0.33)^2
//       + (log2(noise scale' / noise scale) / 2)^2 )
//
// where the first two units are 0.05 and 0.01 when the target is a loss, and w rises from 0.05 to 1
// as the accuracy or the loss nears the target: what matters is when it gets there, and the first
// plateau of a network (and its unsettled batch norm) is nothing the model
// has. The noise scale weighs much because it names the learning rate (AdaScale) and because it
// alone tells noise from curvature. In the fit the model measures without error: a noise scale that
// is off by luck would change the learning rate, and so the curve. The search (Nelder-Mead, from
// several starts) runs over logarithms and logits, so that every constant stays inside its range.
#include "dynamix/simulator/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/report.h"
#include "dynamix/core/rng.h"
#include "dynamix/simulator/engine.h"
#include "dynamix/simulator/nelder_mead.h"
#include "dynamix/simulator/quadratic.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

double Squared(double x) { return x * x; }

// The trace's cluster, for its nodes and events; it never runs.
SimulatedCluster ClockOf(const Trace& trace) { return {trace.job, nullptr}; }

bool Overlaps(const TimedEvent& event, const TracedWindow& window) {
  return event.begin_s < window.begin_s + window.seconds && event.end_s > window.begin_s;
}

// Adds y(b) of every quiet window and worker.
void AddSampleTimes(const Trace& trace, std::map<int, std::vector<double>>& times) {
  const SimulatedCluster clock = ClockOf(trace);
  const std::vector<Node> nodes = ResolveNodes(trace.job.scenario, trace.job.workers);
  for (const TracedWindow& window : trace.windows) {
    for (std::size_t i = 0; i < window.compute_ms.size(); ++i) {
      if (window.batches[i] <= 0 || !(window.compute_ms[i] > 0)) continue;
      const bool slowed =
          std::any_of(clock.events().begin(), clock.events().end(), [&](const TimedEvent& event) {
            return event.kind == EventKind::kSlowdown && event.worker == static_cast<int>(i) &&
                   Overlaps(event, window);
          });
      if (slowed) continue;
      // A real machine may have less than the file says: then all of it is the samples'.
      const double own = window.compute_ms[i] - nodes[i].overhead_ms;
      times[window.batches[i]].push_back((own > 0 ? own : window.compute_ms[i]) * nodes[i].speed /
                                         window.batches[i]);
    }
  }
}

// Calls `use(window, slowest compute, exchange)` for the windows of traces without events.
template <typename Use>
void ForQuietWindows(const std::vector<Trace>& traces, const CostOptions& cost, const Use& use) {
  for (const Trace& trace : traces) {
    if (!trace.job.scenario.events.empty()) continue;
    const Cluster cluster(trace.job.scenario, cost, trace.job.workers);
    for (const TracedWindow& window : trace.windows) {
      double slowest_ms = 0;
      for (const double own_ms : window.compute_ms)
        if (!IsMissing(own_ms)) slowest_ms = std::max(slowest_ms, own_ms);
      if (slowest_ms > 0) use(window, slowest_ms, cluster);
    }
  }
}

double FitOverlap(const std::vector<Trace>& traces, const CostOptions& cost) {
  std::vector<double> shown;
  ForQuietWindows(traces, cost, [&](const TracedWindow& window, double, const Cluster& cluster) {
    const double exchange_ms = cluster.CommunicationMs();
    if (exchange_ms > 0 && !IsMissing(window.communication_ms))
      shown.push_back(window.communication_ms / exchange_ms);
  });
  // More than the whole exchange: this network is not the scenario's.
  const double median = shown.empty() ? 2 : Median(shown);
  return median > 1.2 ? cost.overlap : std::clamp(1 - median, 0.0, 1.0);
}

double FitExtra(const std::vector<Trace>& traces, const CostOptions& cost) {
  std::vector<double> extra;
  ForQuietWindows(traces, cost,
                  [&](const TracedWindow& window, double slowest_ms, const Cluster& cluster) {
                    extra.push_back(1e3 * window.seconds / window.iterations - slowest_ms -
                                    cluster.ExposedMs(slowest_ms));
                  });
  return extra.empty() ? 0 : std::max(0.0, Median(extra));
}

// Constants of the quadratic as a point of the search, and back.
struct Constant {
  double QuadraticOptions::*field;
  double low, high;
  bool bounded;  // logit between low and high, else logarithm
};
constexpr Constant kConstants[] = {{&QuadraticOptions::curvature, 1e-4, 1e4, false},
                                   {&QuadraticOptions::curvature_decay, 0.2, 4, true},
                                   {&QuadraticOptions::initial_loss, 0.05, 50, false},
                                   {&QuadraticOptions::loss_decay, -2, 3, true},
                                   {&QuadraticOptions::noise_scale, 0.5, 1e6, false},
                                   {&QuadraticOptions::noise_floor, 1e-4, 1, true},
                                   {&QuadraticOptions::irreducible_loss, 1e-3, 10, false},
                                   {&QuadraticOptions::held_out_gap, 1e-3, 10, false},
                                   {&QuadraticOptions::best_accuracy, 0.2, 1, true},
                                   {&QuadraticOptions::accuracy_exponent, 0.05, 4, true}};

Point ToPoint(const QuadraticOptions& options) {
  Point point;
  for (const Constant& c : kConstants) {
    const double margin = 1e-3 * (c.high - c.low);
    const double value = c.bounded ? std::clamp(options.*c.field, c.low + margin, c.high - margin)
                                   : std::clamp(options.*c.field, c.low, c.high);
    const double share = (value - c.low) / (c.high - c.low);
    point.push_back(c.bounded ? std::log(share / (1 - share)) : std::log(value));
  }
  return point;
}

QuadraticOptions FromPoint(const Point& point, QuadraticOptions options) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    const Constant& c = kConstants[i];
    options.*c.field = c.bounded ? c.low + (c.high - c.low) / (1 + std::exp(-point[i]))
                                 : std::clamp(std::exp(point[i]), c.low, c.high);
  }
  options.best_accuracy = std::max(options.best_accuracy, options.chance_accuracy + 1e-3);
  return options;
}

// The trace in at most about kSteps steps: windows with the same batches are one, as long as what
// was measured at their end is what is compared.
constexpr std::size_t kSteps = 60;
std::vector<TracedWindow> Steps(const Trace& trace) {
  const int most = trace.job.window *
                   static_cast<int>(1 + trace.windows.size() / kSteps);  // iterations of a step
  std::vector<TracedWindow> steps;
  for (const TracedWindow& window : trace.windows) {
    const bool joins = !steps.empty() && steps.back().batches == window.batches &&
                       steps.back().iterations + window.iterations <= most;
    const int before = joins ? steps.back().iterations : 0;
    if (!joins) steps.emplace_back();
    steps.back() = window;
    steps.back().iterations += before;
  }
  return steps;
}

// Recorded accuracies and losses are smoothed over this share of a run (SimulatedCluster).
constexpr double kSmoothing = 0.01;

// Of a window from the target, in units over which its weight falls.
double Distance(const TargetOptions& target, const TracedWindow& window) {
  return target.by_loss() ? std::abs(std::log(window.held_out_loss / target.loss)) / 0.1
                          : std::abs(target.accuracy - window.held_out_accuracy) / 0.05;
}

double Misfit(const Trace& trace, const QuadraticOptions& options, const TargetOptions& target) {
  Quadratic model(options, trace.job.workload.optimizer, 1);
  double accuracy = options.chance_accuracy, loss = model.HeldOutLoss();
  double sum = 0, weight = 1e-9;
  for (const TracedWindow& window : trace.windows) {
    const TrainingReport report = model.Run(window.batches, window.iterations);
    const double share = window.Samples() / trace.job.workload.optimizer.planned_samples;
    const double fresh = 1 - std::exp(-share / kSmoothing);
    accuracy += fresh * (model.HeldOutAccuracy() - accuracy);
    loss += fresh * (model.HeldOutLoss() - loss);
    if (IsMissing(window.held_out_accuracy)) continue;
    const double near = std::exp(-Distance(target, window));
    const double own = share * (0.05 + 0.95 * near);
    // A wrong model may be wildly wrong; one window must not drown the others.
    const auto add = [&](double error) { sum += own * std::min(Squared(error), 100.0); };
    add((accuracy - window.held_out_accuracy) / (target.by_loss() ? 0.05 : 0.01));
    if (window.held_out_loss > 0)
      add(std::log(loss / window.held_out_loss) / (target.by_loss() ? 0.01 : 0.33));
    if (window.training_loss > 0) add(std::log(report.loss / window.training_loss) / 0.33);
    if (window.noise_scale > 0 && report.noise_scale > 0)
      add(std::log2(report.noise_scale / window.noise_scale) / 2);
    weight += own;
  }
  return sum / weight;
}

void Require(const std::vector<Trace>& traces) {
  if (traces.empty()) throw InputError("calibration needs at least one recorded run");
  for (const Trace& trace : traces)
    if (trace.windows.empty()) throw InputError("calibration: a run without windows");
}

}  // namespace

FittedCost FitCost(const std::vector<Trace>& traces) {
  Require(traces);
  CostOptions cost = traces.front().job.workload.cost;
  std::map<int, std::vector<double>> times;
  for (const Trace& trace : traces) AddSampleTimes(trace, times);
  if (times.empty()) throw InputError("calibration: no window without a slowdown was recorded");
  struct Seen {
    double batch, sample_ms, weight;
  };
  std::vector<Seen> seen;
  for (const auto& [batch, values] : times)
    seen.push_back({static_cast<double>(batch), Median(values),
                    std::sqrt(static_cast<double>(values.size()))});
  const auto at = [&cost](const Point& p) {
    CostOptions fitted = cost;
    fitted.sample_ms = std::exp(p[0]);
    fitted.saturation.ramp_batch = std::clamp(std::exp(p[1]) - 0.01, 0.0, 1e4);
    fitted.saturation.spill_batch = std::clamp(std::exp(p[2]), 1.0, 1e6);
    fitted.saturation.spill = std::clamp(std::exp(p[3]) - 0.01, 0.0, 5.0);
    return fitted;
  };
  Point start = {std::log(seen.back().sample_ms), std::log(cost.saturation.ramp_batch + 0.01),
                 std::log(cost.saturation.spill_batch), std::log(cost.saturation.spill + 0.01)};
  const auto misfit = [&](const Point& p) {
    const CostOptions fitted = at(p);
    double sum = 0, weight = 0;
    for (const Seen& s : seen) {
      sum += s.weight *
             Squared(std::log(fitted.sample_ms * fitted.saturation.Factor(s.batch) / s.sample_ms));
      weight += s.weight;
    }
    double pull = 0;
    for (int d = 1; d < 4; ++d) pull += Squared(p[d] - start[d]);
    return sum / weight + 1e-5 * pull;
  };
  cost = at(Minimize(misfit, Minimize(misfit, start, 0.5, 600), 0.2, 600));
  cost.overlap = FitOverlap(traces, cost);
  return {cost, FitExtra(traces, cost)};
}

QuadraticOptions FitConvergence(const std::vector<Trace>& traces, const TargetOptions& target) {
  Require(traces);
  const Workload& workload = traces.front().job.workload;
  QuadraticOptions first = workload.is_quadratic()
                               ? std::get<QuadraticOptions>(workload.convergence)
                               : QuadraticOptions{};
  const double noise_dimensions = first.noise_dimensions;
  first.noise_dimensions = 1e9;
  std::vector<Trace> stepped = AverageSeeds(traces);
  for (Trace& trace : stepped) trace.windows = Steps(trace);
  const auto misfit = [&](const Point& point) {
    const QuadraticOptions options = FromPoint(point, first);
    double sum = 0;
    for (const Trace& trace : stepped) sum += Misfit(trace, options, target);
    return std::isfinite(sum) ? sum / static_cast<double>(stepped.size()) : 1e9;
  };
  constexpr int kStarts = 12, kEvaluations = 1000;
  Rng rng(1);
  Point best;
  for (int i = 0; i < kStarts; ++i) {
    Point start = ToPoint(first);
    for (double& x : start) x += i == 0 ? 0 : rng.Normal();
    const Point found = Minimize(misfit, start, 0.7, kEvaluations);
    if (best.empty() || misfit(found) < misfit(best)) best = found;
  }
  // A simplex that has collapsed goes on from a fresh one.
  for (const double step : {0.5, 0.3, 0.3, 0.1})
    best = Minimize(misfit, best, step, 2 * kEvaluations);
  QuadraticOptions fitted = FromPoint(best, first);
  fitted.noise_dimensions = noise_dimensions;
  return fitted;
}

Trace Replay(const Trace& trace, const FittedCost& cost, const QuadraticOptions& convergence) {
  Trace replayed = trace;
  replayed.job.workload.cost = cost.cost;
  replayed.job.workload.convergence = convergence;
  for (NodeGroup& group : replayed.job.scenario.nodes) group.node.overhead_ms += cost.extra_ms;
  std::vector<Trace> seeds(3, replayed);
  for (Trace& own : seeds) {
    own.job.seed = trace.job.seed + static_cast<std::uint64_t>(&own - seeds.data());
    own.windows.clear();
    SimulatedCluster cluster(own.job, MakeConvergence(own.job.workload, {}, own.job.seed));
    DYNAMIX_CHECK(!trace.windows.empty(), "a trace of windows");
    cluster.Start(trace.windows.front().batches);
    for (std::size_t w = 0; w < 3 * trace.windows.size(); ++w) {
      const auto& batches = trace.windows[std::min(w, trace.windows.size() - 1)].batches;
      if (w > 0) cluster.Advance(batches);
      const double seconds = cluster.truth().window_seconds;
      own.windows.push_back({.batches = batches,
                             .iterations = own.job.window,
                             .begin_s = cluster.truth().seconds - seconds,
                             .seconds = seconds,
                             .held_out_accuracy = cluster.truth().held_out_accuracy,
                             .held_out_loss = cluster.truth().held_out_loss,
                             .training_loss = kMissing,
                             .noise_scale = kMissing,
                             .communication_ms = kMissing});
    }
  }
  return AverageSeeds(seeds).front();
}

}  // namespace dynamix
