#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dynamix/core/report_fields.h"
#include "dynamix/evaluation/comparison.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/record/run_record.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

template <typename T, typename Of>
py::array_t<T> PerRound(const RunRecord& run, const Of& of) {
  py::array_t<T> values(static_cast<py::ssize_t>(run.rounds.size()));
  for (std::size_t i = 0; i < run.rounds.size(); ++i)
    values.mutable_at(static_cast<py::ssize_t>(i)) = of(run.rounds[i]);
  return values;
}

// Rounds x workers; `of(round, worker)`.
template <typename T, typename Of>
py::array_t<T> PerWorker(const RunRecord& run, std::size_t workers, const Of& of) {
  py::array_t<T> values({run.rounds.size(), workers});
  auto to = values.template mutable_unchecked<2>();
  for (std::size_t i = 0; i < run.rounds.size(); ++i)
    for (std::size_t w = 0; w < workers; ++w) to(i, w) = of(run.rounds[i], w);
  return values;
}

// Every field of the workers' reports, under "section.name".
void AddReports(const RunRecord& run, std::size_t workers, py::dict& to) {
  const Report example;
  VisitMeasurements(example, [&](const ReportField& field, const auto&) {
    const std::string section = field.section, name = field.name;
    const auto of = [&](const RecordedRound& round, std::size_t worker) {
      double found = kMissing;
      if (worker < round.workers.size() && round.workers[worker].iterations > 0)
        VisitMeasurements(round.workers[worker], [&](const ReportField& each, const auto& value) {
          if (section == each.section && name == each.name) found = static_cast<double>(value);
        });
      return found;
    };
    to[py::str((section.empty() ? "" : section + ".") + name)] =
        PerWorker<double>(run, workers, of);
  });
}

py::dict ReadRun(const std::string& folder) {
  const RunRecord run = LoadRun(folder);
  std::size_t workers = 0;
  for (const RecordedRound& round : run.rounds) workers = std::max(workers, round.batches.size());
  const auto in = [](const std::vector<int>& sizes, std::size_t worker) {
    return worker < sizes.size() ? sizes[worker] : 0;
  };
  py::dict all;
  all["name"] = run.name;
  all["policy"] = run.config.policy;
  all["backend"] = run.config.backend;
  all["workload"] = run.config.job.workload.name;
  all["cluster"] = run.config.job.scenario.name;
  all["workers"] = workers;
  all["reached"] = run.reached;
  all["time_to_target_s"] = run.time_to_target_s;
  all["final_accuracy"] = run.accuracy;
  all["final_loss"] = run.loss;
  all["round"] = PerRound<std::int64_t>(run, [](const RecordedRound& r) { return r.index; });
  all["seconds"] = PerRound<double>(run, [](const RecordedRound& r) { return r.seconds; });
  all["window_seconds"] =
      PerRound<double>(run, [](const RecordedRound& r) { return r.window_seconds; });
  all["held_out_accuracy"] =
      PerRound<double>(run, [](const RecordedRound& r) { return r.accuracy; });
  all["held_out_loss"] = PerRound<double>(run, [](const RecordedRound& r) { return r.loss; });
  all["global_batch"] =
      PerRound<double>(run, [](const RecordedRound& r) { return r.GlobalBatch(); });
  all["batches"] = PerWorker<int>(
      run, workers, [&](const RecordedRound& r, std::size_t w) { return in(r.batches, w); });
  all["sizes"] = PerWorker<int>(
      run, workers, [&](const RecordedRound& r, std::size_t w) { return in(r.sizes, w); });
  AddReports(run, workers, all);
  return all;
}

// The configuration of a job that is no workload file: what its own words say, or, on an emulated
// cluster, the files it stands for.
RunConfig ConfigOf(const std::string& policy, int workers, std::uint64_t seed, int window,
                   const std::string& name, const JobSettings& settings,
                   const TargetOptions& target, double planned_samples, const std::string& cluster,
                   const std::string& workload) {
  RunConfig config{.backend = "live", .policy = policy};
  JobSpec& job = config.job;
  job.workers = workers;
  job.seed = seed;
  job.window = window;
  if (!cluster.empty())
    job.scenario = LoadScenario(cluster);
  else
    job.scenario.name = "the user's cluster";
  if (!workload.empty())
    job.workload = LoadWorkload(workload).OnWorkers(workers);
  else
    job.workload.name = name;
  OptimizerOptions& optimizer = job.workload.optimizer;
  optimizer.rule = settings.rule;
  optimizer.schedule = settings.schedule;
  optimizer.clock = settings.clock;
  optimizer.kind = settings.adaptive ? OptimizerKind::kAdamW : OptimizerKind::kSgd;
  if (settings.base_learning_rate > 0) optimizer.learning_rate = settings.base_learning_rate;
  if (settings.base_batch > 0) optimizer.base_batch = settings.base_batch;
  if (planned_samples > 0) optimizer.planned_samples = planned_samples;
  job.workload.target = target;
  // A job that waits for nothing never gets there.
  if (target.accuracy <= 0 && target.loss <= 0) job.workload.target = {.accuracy = 1};
  return config;
}

// RunFolder as Python holds it.
class BoundFolder {
 public:
  BoundFolder(const std::string& folder, RunConfig config)
      : config_(std::move(config)), folder_(folder, FormatRunConfig(config_)) {}

  void Add(const Round& round, const Decision& decision, double seconds, double accuracy,
           double loss) {
    Truth truth;
    truth.seconds = seconds;
    truth.held_out_accuracy = accuracy;
    truth.held_out_loss = loss;
    folder_.AddRound(RoundJson(round, decision, truth));
  }

  // A window of a job that nobody measures: only its batches are known.
  void AddBatches(std::int64_t index, const std::vector<int>& batches, double window_seconds,
                  double seconds, double accuracy, double loss) {
    Round round;
    round.index = index;
    round.seconds = window_seconds;
    for (const int batch : batches) round.entries.push_back({.start_batch = batch, .batch = batch});
    Decision decision;
    decision.sizes = batches;
    decision.decisions = Sizes{{batches.begin(), batches.end()}};
    Add(round, decision, seconds, accuracy, loss);
  }

  // Returns what is missing in the folder; empty: nothing.
  std::string Finish(const JobResult& result, double seconds, const std::string& more) {
    nlohmann::json summary = SummaryJson(config_, result, seconds);
    summary.update(nlohmann::json::parse(more));
    folder_.Finish(summary);
    return folder_.Loss();
  }

 private:
  RunConfig config_;
  RunFolder folder_;
};

void BindFolder(py::module_& module) {
  py::class_<BoundFolder>(module, "RunFolder", "What a run leaves.")
      .def(py::init([](const std::string& folder, const std::string& policy, int workers,
                       std::uint64_t seed, int window, const std::string& name,
                       const JobSettings& settings, double target_accuracy, double target_loss,
                       double planned_samples, const std::string& cluster,
                       const std::string& workload) {
             return std::make_unique<BoundFolder>(
                 folder, ConfigOf(policy, workers, seed, window, name, settings,
                                  {.accuracy = target_accuracy, .loss = target_loss},
                                  planned_samples, cluster, workload));
           }),
           py::arg("folder"), py::kw_only(), py::arg("policy"), py::arg("workers"), py::arg("seed"),
           py::arg("window"), py::arg("name"), py::arg("settings"), py::arg("target_accuracy"),
           py::arg("target_loss"), py::arg("planned_samples"), py::arg("cluster"),
           py::arg("workload"))
      .def("add", &BoundFolder::Add, py::arg("round"), py::arg("decision"), py::arg("seconds"),
           py::arg("accuracy"), py::arg("loss"))
      .def("add_batches", &BoundFolder::AddBatches, py::arg("index"), py::arg("batches"),
           py::arg("window_seconds"), py::arg("seconds"), py::arg("accuracy"), py::arg("loss"))
      .def(
          "finish",
          [](BoundFolder& folder, bool reached, double time_to_target_s, double accuracy,
             double loss, std::int64_t windows, double mean_wait_share, double global_batch,
             double seconds, const std::string& more) {
            JobResult result;
            result.reached = reached;
            result.time_to_target_s = time_to_target_s;
            result.final_accuracy = accuracy;
            result.final_loss = loss;
            result.windows = static_cast<double>(windows);
            result.mean_wait_share = mean_wait_share;
            result.last_global_batch = global_batch;
            return folder.Finish(result, seconds, more);
          },
          py::kw_only(), py::arg("reached"), py::arg("time_to_target_s"), py::arg("accuracy"),
          py::arg("loss"), py::arg("windows"), py::arg("mean_wait_share"), py::arg("global_batch"),
          py::arg("seconds"), py::arg("more"));
  module.def(
      "comparison",
      [](const std::vector<std::string>& summaries) {
        std::vector<ComparedRun> runs;
        for (const std::string& text : summaries) {
          const nlohmann::json summary = nlohmann::json::parse(text);
          runs.push_back({summary.at("policy"), summary.at("seed"), summary});
        }
        const std::vector<ComparedPolicy> policies = ComparePolicies(runs);
        return ComparisonTable(policies) + "\n" + Verdict(policies, /*by_quality=*/false) + "\n";
      },
      py::arg("summaries"));
}

}  // namespace

void BindRecord(py::module_& module) {
  module.def("read_run", &ReadRun, py::arg("folder"));
  BindFolder(module);
}

}  // namespace dynamix
