// dynamix calibrate: recorded runs to a workload file, with the error on batch sizes the fit did
// not see.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/cli/commands.h"
#include "dynamix/cli/progress_bar.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/policy_spec.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/page/text.h"
#include "dynamix/record/run_record.h"
#include "dynamix/simulator/calibration.h"

namespace dynamix {
namespace {

struct CalibrateFlags {
  std::vector<std::string> runs, cost_runs;
  std::string out;
  // 0: ChooseTarget.
  double target_accuracy = 0, target_loss = 0;
  double sample_ms = 0;  // 0: as fitted
  bool keep_cost = false;
  bool json = false;
  int threads = 2;
};

struct Compared {
  double recorded = kMissing, simulated = kMissing;
  bool extrapolated = false;  // of the smallest or the largest size

  double Error() const { return simulated / recorded - 1; }
  bool MissedOnce() const { return IsMissing(recorded) != IsMissing(simulated); }
};

// What the fit without a batch size says of the runs at that size, against what was recorded.
struct HeldOut {
  std::string size;
  int runs = 0;                   // whose accuracy was recorded
  Compared iteration_ms, time_s;  // the latter to target; missing: not reached
};

Trace TraceOf(const RunRecord& run) {
  Trace trace{.job = run.config.job};
  double begin = 0;
  for (const RecordedRound& round : run.rounds) {
    TracedWindow window{.batches = round.batches,
                        .iterations = run.config.job.window,
                        .begin_s = begin,
                        .seconds = round.seconds - begin,
                        .held_out_accuracy = round.accuracy,
                        .held_out_loss = round.loss,
                        .training_loss = round.training.loss,
                        .noise_scale = round.training.noise_scale,
                        .communication_ms = kMissing};
    for (const Report& times : round.workers) {
      window.compute_ms.push_back(times.compute_ms);
      if (!IsMissing(times.communication_ms)) window.communication_ms = times.communication_ms;
    }
    begin = round.seconds;
    trace.windows.push_back(std::move(window));
  }
  return trace;
}

// Runs of the same size are left out together: the local batch of static ones.
std::string SizeOf(const RunRecord& run) {
  const std::string policy = WithoutPrefixes(run.config.policy);
  return policy.starts_with("static") ? std::to_string(run.rounds.back().batches.front()) : policy;
}
double NumberOf(const std::string& size) { return std::atof(size.c_str()); }  // 0: a rule's name

void RequireSameModel(const Trace& first, const Trace& other, const std::string& who) {
  const auto text = [](const ModelOptions& model) {
    return model.name + " x " + Short(model.width) + " on " + model.dataset;
  };
  const std::string one = text(first.job.workload.model), two = text(other.job.workload.model);
  if (one != two)
    throw InputError(who + " trains " + two + ", the runs before " + one +
                     ": one workload at a time");
}

// Recorded runs by size.
class Runs {
 public:
  Runs(const std::vector<std::string>& folders, const std::string& flag) {
    for (const std::string& folder : folders) {
      const RunRecord run = LoadRun(folder);
      if (run.rounds.empty()) throw InputError(folder + " has no finished window");
      modelled_clock_ = modelled_clock_ || run.config.backend != "live";
      const Trace trace = TraceOf(run);
      if (!traces_.empty()) RequireSameModel(front(), trace, folder);
      traces_[SizeOf(run)].push_back(trace);
    }
    if (!folders.empty() && traces_.size() < 3)
      throw InputError::OutOfRange(
          "batch sizes of " + flag, traces_.size(),
          "runs at three or more, so that each can be predicted from others");
  }

  bool empty() const { return traces_.empty(); }
  bool modelled_clock() const { return modelled_clock_; }
  const std::map<std::string, std::vector<Trace>>& traces() const { return traces_; }
  const Trace& front() const { return traces_.begin()->second.front(); }

  std::vector<Trace> Without(const std::string& size) const {
    std::vector<Trace> others;
    for (const auto& [other, traces] : traces_)
      if (other != size) others.insert(others.end(), traces.begin(), traces.end());
    return others;
  }

  // Not between two other sizes.
  bool AtAnEnd(const std::string& size) const {
    bool smaller = false, larger = false;
    for (const auto& [other, traces] : traces_) {
      smaller = smaller || NumberOf(other) < NumberOf(size);
      larger = larger || NumberOf(other) > NumberOf(size);
    }
    return NumberOf(size) > 0 && !(smaller && larger);
  }

 private:
  std::map<std::string, std::vector<Trace>> traces_;
  bool modelled_clock_ = false;
};

// The worst of the best accuracies, or losses, of all sizes: what every size reaches.
double ReachedByAll(const Runs& runs, bool by_loss) {
  double reached = by_loss ? 0 : 1;
  for (const auto& [size, traces] : runs.traces())
    for (const Trace& trace : AverageSeeds(traces))
      reached =
          by_loss ? std::max(reached, trace.Best(by_loss)) : std::min(reached, trace.Best(by_loss));
  return reached;
}

// What was asked for, or the workload's target where runs of every size reach it, or the best
// hundredth they do.
TargetOptions ChooseTarget(const CalibrateFlags& flags, const Runs& runs) {
  if (flags.target_accuracy > 0) return {.accuracy = flags.target_accuracy};
  if (flags.target_loss > 0) return {.loss = flags.target_loss};
  const TargetOptions own = runs.front().job.workload.target;
  const double reached = ReachedByAll(runs, own.by_loss());
  if (own.by_loss())
    return own.loss >= reached ? own : TargetOptions{.loss = std::ceil(100 * reached) / 100};
  return own.accuracy > 0 && own.accuracy <= reached
             ? own
             : TargetOptions{.accuracy = std::floor(100 * reached) / 100};
}

struct Fit {
  FittedCost cost;
  QuadraticOptions convergence;
};

class Calibration {
 public:
  explicit Calibration(const CalibrateFlags& flags)
      : flags_(flags),
        runs_(flags.runs, "RUN"),
        cost_runs_(flags.cost_runs, "--cost"),
        target_(ChooseTarget(flags, runs_)) {
    if (!cost_runs_.empty()) RequireSameModel(runs_.front(), cost_runs_.front(), "--cost");
  }

  void Run() {
    std::vector<std::string> left_out = {""};  // the first fit sees all
    std::map<double, std::string> sizes;       // in the order of their numbers, rules first
    for (const Runs* runs : {&runs_, &cost_runs_})
      for (const auto& [size, traces] : runs->traces()) {
        if (NumberOf(size) > 0)
          sizes[NumberOf(size)] = size;
        else
          left_out.push_back(size);
      }
    for (const auto& [number, size] : sizes) left_out.push_back(size);
    ProgressBar bar("calibrate", static_cast<long>(left_out.size()), flags_.json);
    held_out_.resize(left_out.size() - 1);
    ParallelFor(static_cast<int>(left_out.size()), flags_.threads, [&](int i) {
      if (i == 0)
        fit_ = {FitCostWithout(""), FitConvergence(runs_.Without(""), target_)};
      else
        held_out_[i - 1] = Predict(left_out[i]);
      bar.Advance(1, i == 0 ? "all runs" : "without " + left_out[i]);
    });
  }

  Workload Result() const {
    Workload workload = runs_.front().job.workload;
    workload.cost = fit_.cost.cost;
    if (flags_.sample_ms > 0) workload.cost.sample_ms = flags_.sample_ms;
    workload.convergence = fit_.convergence;
    return workload;
  }
  // Of the machine of the cost's runs, relative to the workload's device.
  double Speed() const {
    return flags_.sample_ms > 0 ? flags_.sample_ms / fit_.cost.cost.sample_ms : 1;
  }
  double extra_ms() const { return fit_.cost.extra_ms; }
  // "accuracy 0.88"
  std::string TargetText() const {
    return target_.by_loss() ? "loss " + Short(target_.loss)
                             : "accuracy " + Short(target_.accuracy);
  }
  const TargetOptions& target() const { return target_; }
  const std::vector<HeldOut>& held_out() const { return held_out_; }

 private:
  const Runs& timed() const { return cost_runs_.empty() ? runs_ : cost_runs_; }

  FittedCost FitCostWithout(const std::string& size) const {
    if (flags_.keep_cost) return {runs_.front().job.workload.cost, 0};
    return FitCost(timed().Without(size));
  }

  HeldOut Predict(const std::string& size) const {
    HeldOut held_out{.size = size};
    const FittedCost cost = FitCostWithout(size);
    const auto timed_runs = timed().traces().find(size), runs = runs_.traces().find(size);
    if (timed_runs != timed().traces().end() && !flags_.keep_cost) {
      const Trace trace = AverageSeeds(timed_runs->second).front();
      held_out.iteration_ms = {trace.MedianIterationMs(),
                               Replay(trace, cost, QuadraticOptions{}).MedianIterationMs(),
                               timed().AtAnEnd(size)};
    }
    if (runs == runs_.traces().end()) return held_out;
    const QuadraticOptions convergence = FitConvergence(runs_.Without(size), target_);
    const Trace trace = AverageSeeds(runs->second).front();
    // A modelled clock ran with the costs of its file, whatever other runs cost.
    const bool own_clock = !cost_runs_.empty() && runs_.modelled_clock();
    const Trace replayed =
        Replay(trace, own_clock ? FittedCost{trace.job.workload.cost, 0} : cost, convergence);
    held_out.runs = static_cast<int>(runs->second.size());
    held_out.time_s = {trace.TimeTo(target_), replayed.TimeTo(target_), runs_.AtAnEnd(size)};
    return held_out;
  }

  const CalibrateFlags& flags_;
  Runs runs_, cost_runs_;
  TargetOptions target_;
  Fit fit_;
  std::vector<HeldOut> held_out_;
};

// Mean absolute error over the sizes that were measured (reached the target) on both sides.
double MeanError(const std::vector<HeldOut>& held_out, Compared HeldOut::*what, bool extrapolated) {
  double sum = 0;
  int count = 0;
  for (const HeldOut& size : held_out) {
    const Compared& compared = size.*what;
    if (compared.extrapolated != extrapolated || IsMissing(compared.Error())) continue;
    sum += std::abs(compared.Error());
    ++count;
  }
  return count > 0 ? sum / count : kMissing;
}

std::string Percent(double share) { return IsMissing(share) ? "-" : Fixed(100 * share, 1) + " %"; }

std::string ErrorLine(const Calibration& calibration) {
  const auto error = [&](Compared HeldOut::*what, bool extrapolated) {
    return Percent(MeanError(calibration.held_out(), what, extrapolated));
  };
  int missed = 0;
  for (const HeldOut& size : calibration.held_out()) missed += size.time_s.MissedOnce() ? 1 : 0;
  std::string line =
      "Mean error on held-out batch sizes: iteration time " + error(&HeldOut::iteration_ms, false) +
      " (goal 10 %), time to " + calibration.TargetText() + " " + error(&HeldOut::time_s, false) +
      " (goal 20 %); of the smallest and the largest size, an extrapolation, " +
      error(&HeldOut::iteration_ms, true) + " and " + error(&HeldOut::time_s, true) + ".";
  if (missed > 0)
    line += " At " + std::to_string(missed) +
            " more only one of the recorded and the simulated run got there.";
  return line;
}

std::string ClusterLine(const Calibration& calibration) {
  return "Of the cluster, not written: a node here has speed " + Fixed(calibration.Speed(), 3) +
         ", an iteration takes " + Fixed(calibration.extra_ms(), 2) +
         " ms longer than compute and the modelled exchange.";
}

void Print(const Calibration& calibration) {
  Table table({"held out", "iteration", "simulated", "error", "runs",
               "to " + calibration.TargetText(), "simulated", "error"});
  const auto cell = [](double value, const char* unit, const char* missing) {
    return IsMissing(value) ? missing : Fixed(value, 2) + unit;
  };
  for (const HeldOut& size : calibration.held_out()) {
    const char* missing = size.runs > 0 ? "missed" : "-";
    table.Add({size.size, cell(size.iteration_ms.recorded, " ms", "-"),
               cell(size.iteration_ms.simulated, " ms", "-"), Percent(size.iteration_ms.Error()),
               std::to_string(size.runs), cell(size.time_s.recorded, " s", missing),
               cell(size.time_s.simulated, " s", missing), Percent(size.time_s.Error())});
  }
  std::printf("%s\n%s\n%s\n", table.Text().c_str(), ErrorLine(calibration).c_str(),
              ClusterLine(calibration).c_str());
}

nlohmann::json ToJson(const Calibration& calibration) {
  const auto number = [](double x) { return IsMissing(x) ? nlohmann::json() : nlohmann::json(x); };
  const auto errors = [&](bool extrapolated) -> nlohmann::json {
    const auto error = [&](Compared HeldOut::*what) {
      return number(MeanError(calibration.held_out(), what, extrapolated));
    };
    return {{"iteration", error(&HeldOut::iteration_ms)}, {"time", error(&HeldOut::time_s)}};
  };
  nlohmann::json list = nlohmann::json::array();
  for (const HeldOut& size : calibration.held_out())
    list.push_back({{"size", size.size},
                    {"runs", size.runs},
                    {"iteration_ms", number(size.iteration_ms.recorded)},
                    {"simulated_iteration_ms", number(size.iteration_ms.simulated)},
                    {"time_to_target_s", number(size.time_s.recorded)},
                    {"simulated_time_to_target_s", number(size.time_s.simulated)},
                    {"extrapolated", size.time_s.extrapolated}});
  return {{"held_out", list},
          {"target_accuracy",
           number(calibration.target().accuracy > 0 ? calibration.target().accuracy : kMissing)},
          {"target_loss",
           number(calibration.target().by_loss() ? calibration.target().loss : kMissing)},
          {"interpolation_error", errors(false)},
          {"extrapolation_error", errors(true)},
          {"speed", calibration.Speed()},
          {"extra_ms", calibration.extra_ms()}};
}

void Calibrate(const CalibrateFlags& flags) {
  Calibration calibration(flags);
  calibration.Run();
  std::ofstream file(flags.out);
  file << "# Fitted by dynamix calibrate from " << flags.runs.size() + flags.cost_runs.size()
       << " recorded runs.\n# " << ErrorLine(calibration) << "\n"
       << FormatWorkload(calibration.Result());
  if (!file.flush()) throw std::runtime_error("cannot write " + flags.out);
  if (flags.json) {
    nlohmann::json result = ToJson(calibration);
    result["workload"] = flags.out;
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  Print(calibration);
  std::printf("workload: %s\n", flags.out.c_str());
}

}  // namespace

void AddCalibrateCommand(CLI::App& app) {
  // Shared with the callback, which outlives this call.
  const auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command =
      app.add_subcommand("calibrate", "Fit a workload's constants to recorded runs of it");
  command->add_option("run", flags->runs, "folders of runs, at three or more batch sizes")
      ->required();
  command->add_option("-o,--out", flags->out, "workload file to write")->required();
  CLI::Option* cost = command->add_option(
      "--cost", flags->cost_runs,
      "folders of runs for the cost of a sample, at three or more batch sizes; live ones of some "
      "seconds do; default: the runs");
  CLI::Option* accuracy =
      command
          ->add_option("--target", flags->target_accuracy,
                       "accuracy to which times are compared; default: the workload's target, or "
                       "the best hundredth that every size reaches")
          ->check(CLI::Range(0.0, 1.0));
  command->add_option("--target-loss", flags->target_loss, "loss to which times are compared")
      ->check(CLI::Range(0.0, 1e9))
      ->excludes(accuracy);
  command
      ->add_option("--sample-ms", flags->sample_ms,
                   "sample_ms to write: of the device that scenarios call speed 1; default: of the "
                   "machine of the runs")
      ->check(CLI::Range(1e-9, 1e6));
  command
      ->add_flag("--keep-cost", flags->keep_cost,
                 "fit convergence only: the runs' clock was modelled with known costs")
      ->excludes(cost);
  command->add_option("--threads", flags->threads, "fits at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "one JSON object on stdout instead of a table");
  command->footer(
      "Example:\n"
      "  for b in 16 64 256; do\n"
      "    dynamix train --cluster live/calibration --policy static:$b --full --run runs/b$b\n"
      "    dynamix train --backend live --cluster live/calibration --testbed quota --workers 2 \\\n"
      "      --policy static:$b --time 5 --run runs/c$b\n"
      "  done\n"
      "  dynamix calibrate runs/b16 runs/b64 runs/b256 --cost runs/c16 runs/c64 runs/c256 \\\n"
      "    -o workloads/mine.toml");
  command->callback([flags] { Calibrate(*flags); });
}

}  // namespace dynamix
