// dynamix calibrate: recorded runs to a workload file, with the error on batch sizes the fit did
// not see.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/cli/chart.h"
#include "dynamix/cli/commands.h"
#include "dynamix/cli/progress.h"
#include "dynamix/cli/run_record.h"
#include "dynamix/cli/table.h"
#include "dynamix/core/input_error.h"
#include "dynamix/simulator/calibration.h"

namespace dynamix {
namespace {

struct CalibrateFlags {
  std::vector<std::string> runs;
  std::string out;
  double target = 0;  // 0: the runs' own
  bool keep_cost = false;
  bool json = false;
  int threads = 2;
};

// What the fit without its batch size says of a run, against what was recorded.
struct HeldOut {
  std::string run, size;
  double iteration_ms, simulated_iteration_ms;
  double time_s, simulated_time_s;  // to target; missing: not reached

  double IterationError() const { return simulated_iteration_ms / iteration_ms - 1; }
  double TimeError() const { return simulated_time_s / time_s - 1; }
};

Trace TraceOf(const RunRecord& run) {
  Trace trace{.scenario = run.config.scenario,
              .workload = run.config.workload,
              .workers = run.config.workers,
              .seed = run.config.seed,
              .window_iterations = run.config.window};
  double begin = 0;
  for (const RecordedRound& round : run.rounds) {
    TracedWindow window{.batches = round.batches,
                        .iterations = run.config.window,
                        .begin_s = begin,
                        .seconds = round.seconds - begin,
                        .held_out_accuracy = round.accuracy,
                        .held_out_loss = round.loss,
                        .training_loss = round.training.loss,
                        .noise_scale = round.training.noise_scale,
                        .communication_ms = kMissing};
    for (const WorkerTimes& times : round.workers) {
      window.compute_ms.push_back(times.compute_ms);
      if (!IsMissing(times.communication_ms)) window.communication_ms = times.communication_ms;
    }
    begin = round.seconds;
    trace.windows.push_back(std::move(window));
  }
  return trace;
}

// Runs of the same size are left out together.
std::string SizeOf(const RunRecord& run) {
  return run.config.policy.starts_with("static") ? Short(run.rounds.back().GlobalBatch())
                                                 : run.config.policy;
}

struct Fit {
  CostOptions cost;
  QuadraticOptions convergence;
};

Fit FitAll(const std::vector<Trace>& traces, const CalibrateFlags& flags) {
  return {flags.keep_cost ? traces.front().workload.cost : FitCost(traces), FitConvergence(traces)};
}

class Calibration {
 public:
  explicit Calibration(const CalibrateFlags& flags) : flags_(flags) {
    for (const std::string& folder : flags.runs) {
      runs_.push_back(LoadRun(folder));
      traces_.push_back(TraceOf(runs_.back()));
      if (flags.target > 0) traces_.back().workload.target = {.accuracy = flags.target};
      sizes_[SizeOf(runs_.back())].push_back(traces_.size() - 1);
      if (runs_.back().config.workload.model.name != runs_.front().config.workload.model.name)
        throw InputError(folder + " trains " + runs_.back().config.workload.model.name + ", " +
                         flags.runs.front() + " trains " +
                         runs_.front().config.workload.model.name + ": one workload at a time");
    }
    if (sizes_.size() < 3)
      throw InputError::OutOfRange(
          "batch sizes", sizes_.size(),
          "runs at three or more, so that each can be predicted from others");
  }

  void Run() {
    std::vector<std::string> left_out = {""};  // the first fit sees all
    for (const auto& [size, indices] : sizes_) left_out.push_back(size);
    Progress progress("calibrate", static_cast<long>(left_out.size()), flags_.json);
    std::vector<std::vector<HeldOut>> parts(left_out.size());
    ParallelFor(static_cast<int>(left_out.size()), flags_.threads, [&](int i) {
      if (i == 0) {
        fit_ = FitAll(traces_, flags_);
      } else {
        parts[i] = Predict(left_out[i]);
      }
      progress.Advance(1, i == 0 ? "all runs" : "without " + left_out[i]);
    });
    for (auto& part : parts) held_out_.insert(held_out_.end(), part.begin(), part.end());
  }

  Workload Result() const {
    Workload workload = traces_.front().workload;
    workload.cost = fit_.cost;
    workload.convergence = fit_.convergence;
    return workload;
  }
  const std::vector<HeldOut>& held_out() const { return held_out_; }

 private:
  std::vector<HeldOut> Predict(const std::string& size) const {
    std::vector<Trace> others;
    for (const auto& [other, indices] : sizes_)
      for (const std::size_t i : indices)
        if (other != size) others.push_back(traces_[i]);
    const Fit fit = FitAll(others, flags_);
    std::vector<HeldOut> predicted;
    for (const std::size_t i : sizes_.at(size)) {
      const Prediction prediction = Replay(traces_[i], fit.cost, fit.convergence);
      predicted.push_back({runs_[i].name, size, traces_[i].MeanIterationMs(),
                           prediction.iteration_ms, traces_[i].TimeToTarget(),
                           prediction.time_to_target_s});
    }
    return predicted;
  }

  const CalibrateFlags& flags_;
  std::vector<RunRecord> runs_;
  std::vector<Trace> traces_;
  std::map<std::string, std::vector<std::size_t>> sizes_;
  Fit fit_;
  std::vector<HeldOut> held_out_;
};

// Mean absolute errors; of times over the runs that reached the target on both sides.
struct Errors {
  double iteration = 0, time = 0;
  int runs = 0, timed = 0;
};

Errors MeanErrors(const std::vector<HeldOut>& held_out) {
  Errors errors;
  for (const HeldOut& run : held_out) {
    errors.iteration += std::abs(run.IterationError());
    ++errors.runs;
    if (IsMissing(run.TimeError())) continue;
    errors.time += std::abs(run.TimeError());
    ++errors.timed;
  }
  errors.iteration /= std::max(1, errors.runs);
  errors.time = errors.timed > 0 ? errors.time / errors.timed : kMissing;
  return errors;
}

std::string Percent(double share) { return IsMissing(share) ? "-" : Fixed(100 * share, 1) + " %"; }
std::string Time(double seconds) {
  return IsMissing(seconds) ? "missed" : Fixed(seconds, 2) + " s";
}

std::string ErrorLine(const Errors& errors) {
  return "Mean error on held-out batch sizes: iteration time " + Percent(errors.iteration) +
         " (goal 10 %), time to target " + Percent(errors.time) + " (goal 20 %), over " +
         std::to_string(errors.runs) + " runs, " + std::to_string(errors.timed) +
         " of which reached the target in both.";
}

void Print(const std::vector<HeldOut>& held_out, const Errors& errors) {
  Table table(
      {"held out", "iteration", "simulated", "error", "time to target", "simulated", "error"});
  for (const HeldOut& run : held_out)
    table.Add({run.run, Fixed(run.iteration_ms, 2) + " ms",
               Fixed(run.simulated_iteration_ms, 2) + " ms", Percent(run.IterationError()),
               Time(run.time_s), Time(run.simulated_time_s), Percent(run.TimeError())});
  std::printf("%s\n%s\n", table.Text().c_str(), ErrorLine(errors).c_str());
}

nlohmann::json ToJson(const std::vector<HeldOut>& held_out, const Errors& errors) {
  const auto number = [](double x) { return IsMissing(x) ? nlohmann::json() : nlohmann::json(x); };
  nlohmann::json list = nlohmann::json::array();
  for (const HeldOut& run : held_out)
    list.push_back({{"run", run.run},
                    {"size", run.size},
                    {"iteration_ms", run.iteration_ms},
                    {"simulated_iteration_ms", run.simulated_iteration_ms},
                    {"time_to_target_s", number(run.time_s)},
                    {"simulated_time_to_target_s", number(run.simulated_time_s)}});
  return {{"held_out", list},
          {"iteration_error", errors.iteration},
          {"time_to_target_error", number(errors.time)}};
}

void Calibrate(const CalibrateFlags& flags) {
  Calibration calibration(flags);
  calibration.Run();
  const Errors errors = MeanErrors(calibration.held_out());
  std::ofstream file(flags.out);
  file << "# Fitted by dynamix calibrate from " << flags.runs.size() << " recorded runs.\n# "
       << ErrorLine(errors) << "\n"
       << FormatWorkload(calibration.Result());
  if (!file.flush()) throw std::runtime_error("cannot write " + flags.out);
  if (flags.json) {
    nlohmann::json result = ToJson(calibration.held_out(), errors);
    result["workload"] = flags.out;
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  Print(calibration.held_out(), errors);
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
  command
      ->add_option("--target", flags->target,
                   "accuracy to which times are compared, and the workload's; default: the runs'")
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--keep-cost", flags->keep_cost,
                    "fit convergence only: the runs' clock was modelled with known costs");
  command->add_option("--threads", flags->threads, "fits at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "one JSON object on stdout instead of a table");
  command->footer(
      "Example:\n"
      "  for b in 16 64 256; do dynamix train --policy static:$b --full --run runs/b$b; done\n"
      "  dynamix calibrate runs/b16 runs/b64 runs/b256 -o workloads/mine.toml");
  command->callback([flags] { Calibrate(*flags); });
}

}  // namespace dynamix
