#include <pybind11/stl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/own_address.h"
#include "dynamix/host/rank_place.h"
#include "dynamix/monitor/monitor.h"
#include "dynamix/rpc/advised_worker.h"
#include "dynamix/rpc/remote_advisor.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

// Owns a thing with a thread of its own. In a forked child (a data loader's worker) that thread does
// not exist: there the thing is left alone, because ending it would wait for the thread.
template <typename T>
class OwnedByProcess {
 public:
  explicit OwnedByProcess(std::unique_ptr<T> thing = nullptr)
      : thing_(std::move(thing)), process_(getpid()) {}
  OwnedByProcess(OwnedByProcess&&) = default;
  OwnedByProcess& operator=(OwnedByProcess&&) = default;
  ~OwnedByProcess() { Reset(); }

  T& operator*() const { return *thing_; }
  explicit operator bool() const { return thing_ != nullptr; }
  void Reset() {
    if (getpid() == process_)
      thing_.reset();
    else
      (void)thing_.release();
  }

 private:
  std::unique_ptr<T> thing_;
  pid_t process_;
};

// What the background thread says, until Python asks: that thread must not wait for Python's lock.
class Log {
 public:
  void Add(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    sentences_.push_back(sentence);
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sentences_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

// RemoteAdvisor as Python holds it.
struct BoundAdvisor {
  BoundAdvisor(RemoteAdvisorOptions options, const JobSettings& settings)
      : log(std::make_shared<Log>()) {
    options.settings = settings;
    options.log = [log = log](const std::string& sentence) { log->Add(sentence); };
    advisor = OwnedByProcess(std::make_unique<RemoteAdvisor>(options));
  }
  RemoteAdvisor& open() const {
    if (!advisor) throw InputError("the advisor is closed");
    return *advisor;
  }

  std::shared_ptr<Log> log;  // shared with the background thread's callback
  OwnedByProcess<RemoteAdvisor> advisor;
};

py::dict Counts(const RemoteAdvisorCounts& counts) {
  return py::dict(py::arg("submitted") = counts.submitted, py::arg("advised") = counts.advised,
                  py::arg("failed_calls") = counts.failed, py::arg("dropped") = counts.dropped,
                  py::arg("breaker_open") = counts.breaker_open,
                  py::arg("fallback") = counts.fallback);
}

void BindAdvisor(py::module_& module) {
  py::class_<RemoteAdvisorOptions>(module, "AdvisorOptions", "How to reach an arbitrator.")
      .def(
          py::init([](std::string addresses, std::string job, int rank, int size, std::string token,
                      std::string tls_authority, std::string tls_certificate, std::string tls_key,
                      std::string tls_name, double timeout_s, double opening_s, double max_factor,
                      std::uint64_t run) {
            RemoteAdvisorOptions options;
            options.addresses = std::move(addresses);
            options.job = std::move(job);
            options.rank = rank;
            options.size = size;
            options.token = std::move(token);
            options.tls = {std::move(tls_authority), std::move(tls_certificate),
                           std::move(tls_key)};
            options.tls_name = std::move(tls_name);
            options.timeout_s = options.patience_s = timeout_s;
            options.opening_s = opening_s;
            options.max_factor = max_factor;
            options.run = run;
            options.Validate();
            return options;
          }),
          py::kw_only(), py::arg("addresses"), py::arg("job") = "job", py::arg("rank") = 0,
          py::arg("size") = 1, py::arg("token") = "", py::arg("tls_authority") = "",
          py::arg("tls_certificate") = "", py::arg("tls_key") = "", py::arg("tls_name") = "",
          py::arg("timeout_s") = RemoteAdvisorOptions().timeout_s,
          py::arg("opening_s") = RemoteAdvisorOptions().opening_s,
          py::arg("max_factor") = RemoteAdvisorOptions().max_factor, py::arg("run") = 0,
          "addresses: HOST:PORT[,HOST:PORT...]. tls_*: PEM texts, all three or none. run: a number "
          "that all ranks of one training give; 0: none.");
  py::class_<BoundAdvisor>(module, "RemoteAdvisor", "Advice of an arbitrator; never waits.")
      .def(py::init<RemoteAdvisorOptions, const JobSettings&>(), py::arg("options"),
           py::arg("settings"))
      .def(
          "open",
          [](BoundAdvisor& bound, const RoundEntry& entry, double job_start) {
            return bound.open().Open(entry, job_start).value();  // never fails
          },
          py::arg("entry"), py::arg("job_start"), py::call_guard<py::gil_scoped_release>(),
          "Where this rank had better begin, or None. Waits a second at most.")
      .def(
          "submit",
          [](BoundAdvisor& bound, std::int64_t index, const RoundEntry& entry) {
            (void)bound.open().Submit(index, entry);  // never fails
          },
          py::arg("index"), py::arg("entry"))
      .def("poll",
           [](BoundAdvisor& bound) {
             const Answer answer = bound.open().Poll();
             return std::pair(answer.ready, answer.batch);
           })
      .def("counts", [](const BoundAdvisor& bound) { return Counts(bound.open().counts()); })
      .def("take_log", [](BoundAdvisor& bound) { return bound.log->Take(); })
      .def("close", [](BoundAdvisor& bound) { bound.advisor.Reset(); });
}

// AdvisedWorker as Python holds it.
struct BoundWorker {
  BoundWorker(RemoteAdvisorOptions advisor, const JobSettings& settings, const BatchBounds& bounds,
              int start_batch, int window_iterations, const std::string& monitor, int device) {
    AdvisedWorkerOptions options{.advisor = std::move(advisor),
                                 .bounds = bounds,
                                 .start_batch = start_batch,
                                 .window_iterations = window_iterations};
    options.advisor.settings = settings;
    if (monitor != "none") {
      MonitorOptions measured;
      measured.best_tier = ParseNetworkTier("monitor", monitor);
      measured.device = device;
      options.measure = MakeMeasure(std::move(measured));
    }
    worker = OwnedByProcess(std::make_unique<AdvisedWorker>(options));
  }
  AdvisedWorker& open() const {
    if (!worker) throw InputError("the worker is closed");
    return *worker;
  }

  OwnedByProcess<AdvisedWorker> worker;
};

int EndIteration(BoundWorker& bound, const py::kwargs& measured) {
  IterationStats stats;
  std::size_t known = 0;
  VisitIteration(
      [&](const char* name, double& value) {
        if (!measured.contains(name)) return;
        value = measured[name].cast<double>();
        ++known;
      },
      stats);
  if (known != measured.size()) {
    std::string names;
    VisitIteration(
        [&](const char* name) { names += (names.empty() ? "" : ", ") + std::string(name); });
    throw InputError::OutOfRange("end_iteration", py::repr(measured).cast<std::string>(), names);
  }
  return bound.open().EndIteration(stats);
}

void BindWorker(py::module_& module) {
  py::class_<BoundWorker>(module, "Worker")
      .def(py::init<RemoteAdvisorOptions, const JobSettings&, const BatchBounds&, int, int,
                    const std::string&, int>(),
           py::arg("advisor"), py::arg("settings"), py::arg("bounds"), py::arg("start_batch"),
           py::arg("window_iterations"), py::arg("monitor"), py::arg("device"))
      .def_property_readonly("batch", [](const BoundWorker& bound) { return bound.open().batch(); })
      .def("end_iteration", &EndIteration)
      .def("counts", [](const BoundWorker& bound) { return Counts(bound.open().counts()); })
      .def("close", [](BoundWorker& bound) { bound.worker.Reset(); });
}

void BindMonitor(py::module_& module) {
  py::class_<Monitor>(module, "Monitor", "Network and host metrics of this process.")
      .def(py::init([](const std::string& best, int device) {
             MonitorOptions options;
             options.best_tier = ParseNetworkTier("monitor", best);
             options.device = device;
             options.refresh_seconds = 1;
             return Monitor::Start(std::move(options));
           }),
           py::arg("best") = "ebpf", py::arg("device") = -1)
      .def(
          "measure",
          [](Monitor& monitor, RoundEntry& entry) {
            const MonitorWindow window = monitor.ReadWindow();
            entry.report->network = window.NetworkPart();
            entry.report->host = window.HostPart();
          },
          py::arg("entry"))
      .def_property_readonly("tier", &Monitor::tier);
}

void BindPlace(py::module_& module) {
  py::class_<RankPlace>(module, "RankPlace")
      .def_readonly("given", &RankPlace::given)
      .def_readonly("rank", &RankPlace::rank)
      .def_readonly("size", &RankPlace::size)
      .def_readonly("local_rank", &RankPlace::local_rank)
      .def_readonly("address", &RankPlace::address)
      .def_readonly("port", &RankPlace::port)
      .def_readonly("backend", &RankPlace::backend);
  module.def(
      "read_rank_place",
      [](const std::map<std::string, std::string>& variables) {
        return ReadRankPlace([&](const char* name) -> const char* {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        });
      },
      py::arg("variables"));
  module.def("interface_towards", &InterfaceTowards, py::arg("peer"));
}

}  // namespace

void BindClient(py::module_& module) {
  BindAdvisor(module);
  BindWorker(module);
  BindMonitor(module);
  BindPlace(module);
}

}  // namespace dynamix
