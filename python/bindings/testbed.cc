#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/job_clock.h"
#include "dynamix/job/job_spec.h"
#include "dynamix/testbed/pace.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

std::unique_ptr<Pace> MakePace(const std::string& cluster, const std::string& workload, int workers,
                               int rank, std::uint64_t seed) {
  RequireInRange("rank", rank, 0, workers - 1);
  JobSpec job;
  job.scenario = LoadScenario(cluster);
  job.workload = LoadWorkload(workload).OnWorkers(workers);
  job.workers = workers;
  job.seed = seed;
  return std::make_unique<Pace>(job, rank);
}

std::unique_ptr<JobClock> OpenClock(const std::string& path) {
  Result<JobClock> clock = JobClock::Open(path);
  if (!clock) throw InputError("DYNAMIX_JOB_CLOCK: " + clock.error());
  return std::make_unique<JobClock>(std::move(clock).value());
}

}  // namespace

void BindTestbed(py::module_& module) {
  py::class_<Pace>(module, "Pace", "How long an iteration's compute takes on an emulated node.")
      .def(py::init(&MakePace), py::arg("cluster"), py::arg("workload"), py::arg("workers"),
           py::arg("rank"), py::arg("seed"))
      .def("next_ms", &Pace::NextMs, py::arg("batch"), py::arg("seconds"));
  py::class_<JobClock>(module, "JobClock", "The job's clock, as the testbed sees it.")
      .def(py::init(&OpenClock), py::arg("path"))
      .def("set", &JobClock::Set, py::arg("seconds"));
}

}  // namespace dynamix
