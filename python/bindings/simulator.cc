#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/parallel.h"
#include "dynamix/arbitrator/vector_environment.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/evaluation.h"
#include "dynamix/evaluation/learning_tasks.h"
#include "dynamix/evaluation/suite.h"
#include "dynamix/simulator/task.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

using Actions1 = py::array_t<int, py::array::c_style | py::array::forcecast>;

DistributionKind KindNamed(const std::string& name) {
  if (name == "training") return DistributionKind::kTraining;
  if (name == "validation") return DistributionKind::kValidation;
  if (name == "held_out") return DistributionKind::kHeldOut;
  throw InputError::OutOfRange("kind", name, "training, validation or held_out");
}

// A copy with this shape: the environment's own memory changes with the next step.
template <typename T>
py::array Copy(std::span<const T> values, std::vector<py::ssize_t> shape) {
  return py::array_t<T>(std::move(shape), values.data());
}

class BoundVector {
 public:
  BoundVector(int environments, int workers, const std::string& kind, double miniature_share,
              std::int64_t tasks, const std::string& actions, std::uint64_t seed, int threads)
      : environments_(environments), workers_(workers) {
    VectorOptions options;
    options.environments = environments;
    options.workers = workers;
    options.tasks = tasks;
    options.actions = ParseActionOptions(actions);
    options.seed = seed;
    options.threads = threads;
    options.Validate();
    DistributionOptions distribution;
    distribution.kind = KindNamed(kind);
    distribution.min_workers = distribution.max_workers = workers;
    distribution.miniature_share = miniature_share;
    if (miniature_share > 0) distribution.pools = LoadAllPools(FashionMnistFolder());
    const py::gil_scoped_release unlocked;
    all_ = std::make_unique<VectorEnvironment>(options, SimulatorTasks(distribution, tasks, seed));
  }

  void Reset(std::uint64_t seed) {
    const py::gil_scoped_release unlocked;
    all_->Reset(seed);
  }

  py::dict Step(const Actions1& team, const Actions1& local) {
    const StepResult* result;
    {
      const py::gil_scoped_release unlocked;
      result = &all_->Step({team.data(), static_cast<std::size_t>(team.size())},
                           {local.data(), static_cast<std::size_t>(local.size())});
    }
    const py::ssize_t count = environments_;
    py::dict all;
    all["reward"] = Copy<double>(result->rewards, {count});
    all["seconds"] = Copy<double>(result->seconds, {count});
    all["terminated"] = Copy<std::uint8_t>(result->terminated, {count});
    all["truncated"] = Copy<std::uint8_t>(result->truncated, {count});
    all["final_team"] = Copy<float>(result->final_team, {count, TeamWidth()});
    all["final_local"] = Copy<float>(result->final_local, {count, workers_, LocalWidth()});
    return all;
  }

  py::array Team() const {
    return Copy(all_->rows().Team().actor_rows, {environments_, TeamWidth()});
  }
  py::array Local() const {
    return Copy(all_->rows().Local().actor_rows, {environments_, workers_, LocalWidth()});
  }
  py::array TeamMask() const {
    return Copy(all_->rows().Team().masks, {environments_, kActionCount});
  }
  py::array LocalMask() const {
    return Copy(all_->rows().Local().masks, {environments_, workers_, kActionCount});
  }
  Round RoundOf(int environment) const {
    RequireInRange<int>("environment", environment, 0, environments_ - 1);
    return all_->round(environment);
  }

 private:
  int environments_, workers_;
  std::unique_ptr<VectorEnvironment> all_;
};

// Every policy on every job of the suite.
std::vector<JobResult> Evaluate(const py::object& policies, const std::string& suite,
                                const std::vector<std::string>& workloads,
                                const std::vector<int>& workers, int seeds, int threads) {
  std::vector<PolicySpec> specs;
  for (const py::handle& policy : policies)
    specs.push_back(ToPolicySpec(py::reinterpret_borrow<py::object>(policy)));
  const std::vector<JobSpec> jobs = ListJobs({.path = suite,
                                              .shipped = DataFolder() + "/scenarios",
                                              .workloads = workloads,
                                              .workers = workers,
                                              .seeds = seeds},
                                             FindWorkloadFile);
  std::vector<JobResult> results(jobs.size() * specs.size());
  const py::gil_scoped_release unlocked;
  const MiniaturePools pools = LoadPools(jobs, FashionMnistFolder());
  ParallelFor(static_cast<int>(jobs.size()), threads, [&](int j) {
    const Task task = MakeTask(jobs[j], pools);
    for (std::size_t p = 0; p < specs.size(); ++p) {
      Arbitrator arbitrator(specs[p], {.guard = {.on = false}, .seed = jobs[j].seed});
      JobResult& result = results[j * specs.size() + p] =
          RunJob(*task.MakeEnvironment(), arbitrator, task.reference_seconds);
      result.policy = specs[p].name;
      result.scenario = jobs[j].scenario.name;
      result.workload = jobs[j].workload.name;
      result.workers = jobs[j].workers;
      result.seed = static_cast<int>(jobs[j].seed);
    }
  });
  return results;
}

template <typename Features>
std::vector<std::string> NamesOf(const Features& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

}  // namespace

void BindSimulator(py::module_& module) {
  py::class_<BoundVector>(module, "VectorEnvironment")
      .def(py::init<int, int, const std::string&, double, std::int64_t, const std::string&,
                    std::uint64_t, int>(),
           py::kw_only(), py::arg("environments"), py::arg("workers"), py::arg("kind"),
           py::arg("miniature_share"), py::arg("tasks"), py::arg("actions"), py::arg("seed"),
           py::arg("threads"))
      .def("reset", &BoundVector::Reset, py::arg("seed"))
      .def("step", &BoundVector::Step, py::arg("team"), py::arg("local"))
      .def("round", &BoundVector::RoundOf, py::arg("environment"))
      .def_property_readonly("team", &BoundVector::Team)
      .def_property_readonly("local", &BoundVector::Local)
      .def_property_readonly("team_mask", &BoundVector::TeamMask)
      .def_property_readonly("local_mask", &BoundVector::LocalMask);
  py::class_<JobResult>(module, "JobResult", "What came of one policy on one job.")
      .def_readonly("scenario", &JobResult::scenario)
      .def_readonly("workload", &JobResult::workload)
      .def_readonly("policy", &JobResult::policy)
      .def_readonly("workers", &JobResult::workers)
      .def_readonly("seed", &JobResult::seed)
      .def_readonly("time_to_target_s", &JobResult::time_to_target_s)
      .def_readonly("reached", &JobResult::reached)
      .def_readonly("accuracy", &JobResult::final_accuracy)
      .def_readonly("mean_wait_share", &JobResult::mean_wait_share);
  module.def("evaluate", &Evaluate, py::arg("policies"), py::arg("suite"), py::arg("workloads"),
             py::arg("workers"), py::arg("seeds"), py::arg("threads"));
  module.def("team_columns", [] { return NamesOf(TeamColumns()); });
  module.def("local_columns", [] { return NamesOf(LocalColumns()); });
  module.attr("ACTIONS") = kActionCount;
  module.attr("HOLD") = kHold;
}

}  // namespace dynamix
