#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <utility>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

// A policy written in Python: an object with decide(round, states), which returns a batch size per
// worker or Actions. One that remembers has state(), a list of numbers, and restore(numbers). It may
// be called from any thread, so each call takes the interpreter's lock.
class PythonPolicy : public Policy {
 public:
  explicit PythonPolicy(py::object object) : object_(std::move(object)) {
    name_ = py::hasattr(object_, "name")
                ? py::str(object_.attr("name")).cast<std::string>()
                : py::str(py::type::of(object_).attr("__name__")).cast<std::string>();
  }
  ~PythonPolicy() override {
    const py::gil_scoped_acquire lock;
    object_ = py::object();
  }

  std::string_view name() const override { return name_; }

  Decisions Decide(const Round& round, const States& states, Rng&) override {
    const py::gil_scoped_acquire lock;
    // Copies: the policy may keep what it is shown.
    const py::object decided = object_.attr("decide")(Round(round), States(states));
    if (py::isinstance<Actions>(decided)) return decided.cast<Actions>();
    Sizes sizes;
    try {
      sizes.local = decided.cast<std::vector<double>>();
    } catch (const py::cast_error&) {
      throw InputError::OutOfRange("decide()", py::repr(decided).cast<std::string>(),
                                   "a list of numbers, or Actions");
    }
    if (sizes.local.size() != round.entries.size())
      throw InputError::OutOfRange("decide()", std::to_string(sizes.local.size()) + " sizes",
                                   std::to_string(round.entries.size()) + ", one per worker");
    return sizes;
  }

  void Reset() override {
    const py::gil_scoped_acquire lock;
    if (py::hasattr(object_, "reset")) object_.attr("reset")();
  }

  void VisitMemory(Memory& memory) override {
    const py::gil_scoped_acquire lock;
    if (!py::hasattr(object_, "state")) return;
    std::vector<double> numbers;
    if (!memory.reads()) numbers = object_.attr("state")().cast<std::vector<double>>();
    memory(numbers);
    if (memory.reads()) object_.attr("restore")(numbers);
  }

 private:
  py::object object_;
  std::string name_;
};

}  // namespace

PolicySpec ToPolicySpec(const py::object& policy) {
  if (py::isinstance<py::str>(policy)) return FindPolicy(policy.cast<std::string>());
  const bool makes = py::isinstance<py::type>(policy) || !py::hasattr(policy, "decide");
  if (makes && !PyCallable_Check(policy.ptr()))
    throw InputError::OutOfRange("policy", py::repr(policy).cast<std::string>(),
                                 "a name, a file, an object with decide(round, states), or a "
                                 "class or function that makes one");
  // Shared, because a spec is copied between threads that do not hold the interpreter's lock.
  const std::shared_ptr<py::object> held(new py::object(policy), [](py::object* object) {
    const py::gil_scoped_acquire lock;
    delete object;
  });
  PolicySpec spec;
  spec.make = [held, makes]() -> std::unique_ptr<Policy> {
    const py::gil_scoped_acquire lock;
    return std::make_unique<PythonPolicy>(makes ? (*held)() : *held);
  };
  spec.name = std::string(spec.make()->name());
  return spec;
}

void BindPolicies(py::module_& module) {
  py::class_<Actions>(module, "Actions", "One of five adjustments for the team and each worker.")
      .def(py::init([](int team, std::vector<int> local, std::optional<double> team_factor) {
             return Actions{team, std::move(local), team_factor};
           }),
           py::arg("team") = kHold, py::arg("local") = std::vector<int>{},
           py::arg("team_factor") = std::nullopt)
      .def_readwrite("team", &Actions::team)
      .def_readwrite("local", &Actions::local)
      .def_readwrite("team_factor", &Actions::team_factor);

  py::class_<Decision>(module, "Decision", "What was decided in a round, and why.")
      .def_readonly("sizes", &Decision::sizes)
      .def_readonly("policy", &Decision::policy)
      .def_readonly("failure", &Decision::failure)
      .def_readonly("states", &Decision::states)
      .def_property_readonly("advises", [](const Decision& decision) {
        return decision.guard == Guard::State::kAdvises;
      });

  py::class_<Arbitrator>(module, "Arbitrator", "The loop that turns rounds into batch sizes.")
      .def(py::init([](const py::object& policy, std::uint64_t seed, bool guard) {
             ArbitratorOptions options;
             options.guard.on = guard;
             options.seed = seed;
             return std::make_unique<Arbitrator>(ToPolicySpec(policy), std::move(options));
           }),
           py::arg("policy") = "default", py::kw_only(), py::arg("seed") = 1,
           py::arg("guard") = true)
      .def("open", &Arbitrator::Open, py::arg("round"))
      .def("step", py::overload_cast<const Round&>(&Arbitrator::Step), py::arg("round"),
           py::call_guard<py::gil_scoped_release>())
      .def("state",
           [](Arbitrator& arbitrator) {
             Memory memory;
             memory(arbitrator);
             return memory.numbers();
           })
      .def(
          "restore",
          [](Arbitrator& arbitrator, std::vector<double> numbers) {
            Memory memory(std::move(numbers));
            memory(arbitrator);
            memory.ExpectEnd();
          },
          py::arg("state"));
}

}  // namespace dynamix
