#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "dynamix/core/batch.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/learning_rate.h"
#include "dynamix/core/make_round.h"
#include "dynamix/core/noise_scale.h"
#include "dynamix/core/policy.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/core/round.h"
#include "dynamix/core/sampler.h"
#include "dynamix/core/squares.h"
#include "python/bindings/bindings.h"

namespace py = pybind11;

namespace dynamix {
namespace {

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

LearningRateRule RuleNamed(const std::string& name) {
  if (const auto rule = ParseLearningRateRule(name)) return *rule;
  throw InputError::OutOfRange("rule", name, "none, linear, sqrt or adascale");
}

Schedule ScheduleNamed(const std::string& name) {
  if (const auto schedule = ParseSchedule(name)) return *schedule;
  throw InputError::OutOfRange("schedule", name, "constant, cosine, step or warmup");
}

ScheduleClock ClockNamed(const std::string& name) {
  if (const auto clock = ParseScheduleClock(name)) return *clock;
  throw InputError::OutOfRange("clock", name, "samples or steps");
}

// Memory of another library, by its address: an array object around it would cost more than the pass
// over a small one.
template <typename Number>
Number* At(std::uintptr_t address) {
  return reinterpret_cast<Number*>(address);
}

void BindSquares(py::module_& module) {
  module.def(
      "squared_norm",
      [](std::uintptr_t address, std::size_t count, bool is_double) {
        const py::gil_scoped_release others_may_run;
        return is_double ? SquaredNorm(At<double>(address), count)
                         : SquaredNorm(At<float>(address), count);
      },
      py::arg("address"), py::arg("count"), py::arg("is_double"));
  module.def(
      "scale",
      [](std::uintptr_t address, std::size_t count, bool is_double, double factor) {
        const py::gil_scoped_release others_may_run;
        return is_double ? Scale(At<double>(address), count, factor)
                         : Scale(At<float>(address), count, static_cast<float>(factor));
      },
      py::arg("address"), py::arg("count"), py::arg("is_double"), py::arg("factor"),
      "Multiplies in place. Returns the squared norm before.");
}

// Attributes of a class: the fields that `visit_fields` lists.
template <typename Struct, typename VisitAll>
void BindFields(py::class_<Struct>& bound, VisitAll visit_fields) {
  const Struct example{};
  visit_fields(example, [&](const ReportField& field, const auto&) {
    bound.def_property(
        field.name,
        [visit_fields, name = std::string_view(field.name)](const Struct& of) {
          py::object found;
          visit_fields(of, [&](const ReportField& each, const auto& value) {
            if (name == each.name) found = py::cast(value);
          });
          return found;
        },
        [visit_fields, name = std::string_view(field.name)](Struct& of, const py::object& given) {
          visit_fields(of, [&](const ReportField& each, auto& value) {
            if (name == each.name) value = given.cast<std::remove_cvref_t<decltype(value)>>();
          });
        });
  });
}

void BindReports(py::module_& module) {
  py::enum_<NetworkTier>(module, "NetworkTier")
      .value("none", NetworkTier::kNone)
      .value("interface", NetworkTier::kInterface)
      .value("own_sockets", NetworkTier::kOwnSockets)
      .value("inet_diag", NetworkTier::kInetDiag)
      .value("ebpf", NetworkTier::kEbpf);
  auto network = py::class_<NetworkReport>(module, "NetworkReport").def(py::init<>());
  BindFields(network, [](auto& of, auto&& visit) { VisitNetwork(of, visit); });
  auto host = py::class_<HostReport>(module, "HostReport").def(py::init<>());
  BindFields(host, [](auto& of, auto&& visit) { VisitHost(of, visit); });
  auto training = py::class_<TrainingReport>(module, "TrainingReport").def(py::init<>());
  BindFields(training, [](auto& of, auto&& visit) { VisitTraining(of, visit); });
  auto report = py::class_<Report>(module, "Report")
                    .def(py::init<>())
                    .def_readwrite("network", &Report::network)
                    .def_readwrite("host", &Report::host)
                    .def_readwrite("training", &Report::training);
  BindFields(report, [](auto& of, auto&& visit) {
    VisitIdentity(of, visit);
    VisitTimes(of, visit);
  });
}

Numbers PackedEntry(const RoundEntry& entry) {
  const std::vector<double> packed = PackEntry(entry);
  return Numbers(static_cast<py::ssize_t>(packed.size()), packed.data());
}

// "compute_ms" or "training.loss" of every worker.
py::array_t<double> FieldOfAll(const Round& round, const std::string& wanted) {
  py::array_t<double> values(static_cast<py::ssize_t>(round.entries.size()));
  bool known = false;
  const auto read = [&](const Report& report, double& to) {
    VisitFields(report, [&](const ReportField& field, const auto& value) {
      const std::string section = field.section;
      if (wanted != (section.empty() ? "" : section + ".") + field.name) return;
      known = true;
      to = static_cast<double>(value);
    });
  };
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    double& value = values.mutable_at(static_cast<py::ssize_t>(i)) = kMissing;
    if (const auto& report = round.entries[i].report) read(*report, value);
  }
  double unused = 0;
  read(Report{}, unused);
  if (!known)
    throw InputError::OutOfRange("field", wanted,
                                 "a field of a report, as compute_ms or host.cpu_use");
  return values;
}

void BindRounds(py::module_& module) {
  py::class_<BatchBounds>(module, "BatchBounds")
      .def(py::init([](int min, int max, int granularity, double dead_band) {
             return BatchBounds{min, max, granularity, dead_band};
           }),
           py::arg("min") = BatchBounds().min, py::arg("max") = BatchBounds().max,
           py::arg("granularity") = BatchBounds().granularity,
           py::arg("dead_band") = BatchBounds().dead_band)
      .def_readwrite("min", &BatchBounds::min)
      .def_readwrite("max", &BatchBounds::max)
      .def_readwrite("granularity", &BatchBounds::granularity)
      .def_readwrite("dead_band", &BatchBounds::dead_band)
      .def("validate", &BatchBounds::Validate, py::arg("field"));
  module.def("clamp_batch", &ClampBatch, py::arg("wanted"), py::arg("current"), py::arg("bounds"));

  py::class_<RoundEntry>(module, "RoundEntry")
      .def(py::init([](const BatchBounds& bounds, int start_batch, int batch, std::int64_t window) {
             RoundEntry entry{.bounds = bounds, .start_batch = start_batch, .batch = batch};
             entry.report.emplace().window = window;
             return entry;
           }),
           py::arg("bounds"), py::arg("start_batch"), py::arg("batch"), py::arg("window") = 0)
      .def_readwrite("bounds", &RoundEntry::bounds)
      .def_readwrite("start_batch", &RoundEntry::start_batch)
      .def_readwrite("batch", &RoundEntry::batch)
      .def_readwrite("active", &RoundEntry::active)
      .def_readwrite("report", &RoundEntry::report);
  module.def("pack_entry", &PackedEntry, py::arg("entry"));

  py::class_<JobSettings>(module, "JobSettings")
      .def(py::init([](const std::string& rule, const std::string& schedule,
                       const std::string& clock, bool adaptive, double base_learning_rate,
                       double base_batch, double target_accuracy, double target_loss) {
             return JobSettings{.rule = RuleNamed(rule),
                                .schedule = ScheduleNamed(schedule),
                                .clock = ClockNamed(clock),
                                .adaptive = adaptive,
                                .base_learning_rate = base_learning_rate,
                                .base_batch = base_batch,
                                .target_accuracy = target_accuracy,
                                .target_loss = target_loss};
           }),
           py::kw_only(), py::arg("rule") = "none", py::arg("schedule") = "constant",
           py::arg("clock") = "samples", py::arg("adaptive") = false,
           py::arg("base_learning_rate") = kMissing, py::arg("base_batch") = kMissing,
           py::arg("target_accuracy") = kMissing, py::arg("target_loss") = kMissing);

  py::class_<Round>(module, "Round", "The reports of all workers for one window.")
      .def(py::init(&MakeRound), py::arg("index"), py::arg("settings"), py::arg("entries"))
      .def_readonly("index", &Round::index)
      .def_readonly("seconds", &Round::seconds)
      .def_readonly("entries", &Round::entries)
      .def_readonly("base_learning_rate", &Round::base_learning_rate)
      .def_readonly("base_batch", &Round::base_batch)
      .def_readonly("target_accuracy", &Round::target_accuracy)
      .def_readonly("target_loss", &Round::target_loss)
      .def_property_readonly("rule", [](const Round& round) { return Name(round.rule); })
      .def_property_readonly("schedule", [](const Round& round) { return Name(round.schedule); })
      .def_property_readonly("clock", [](const Round& round) { return Name(round.clock); })
      .def_property_readonly("global_batch", &Round::GlobalBatch)
      .def_property_readonly("batches",
                             [](const Round& round) { return py::array(py::cast(Batches(round))); })
      .def("numbers", &FieldOfAll, py::arg("field"),
           "A field of every worker's report as an array, nan where it is missing: "
           "round.numbers('compute_ms'), round.numbers('network.delivery_mbps').");

  py::class_<States>(module, "States", "The encoded round: what a learned policy sees.")
      .def_property_readonly(
          "local",
          [](const States& states) {
            const py::ssize_t width = states.workers > 0 ? states.local.size() / states.workers : 0;
            return py::array_t<float>({static_cast<py::ssize_t>(states.workers), width},
                                      states.local.data());
          })
      .def_property_readonly("team",
                             [](const States& states) {
                               return py::array_t<float>(states.team.size(), states.team.data());
                             })
      .def_property_readonly("shares", [](const States& states) {
        return py::array_t<double>(states.shares.size(), states.shares.data());
      });
}

void BindArithmetic(py::module_& module) {
  py::class_<Sampler>(module, "Sampler", "Which samples each worker reads in each iteration.")
      .def(py::init([](std::int64_t samples, std::uint64_t seed, std::int64_t cursor) {
             RequireInRange<std::int64_t>("samples", samples, 1,
                                          std::numeric_limits<std::uint32_t>::max());
             RequireInRange<std::int64_t>("cursor", cursor, 0, std::int64_t{1} << 62);
             return Sampler(samples, seed, cursor);
           }),
           py::arg("samples"), py::arg("seed") = 0, py::arg("cursor") = 0)
      .def(
          "part",
          [](Sampler& sampler, const std::vector<int>& batches, int rank) {
            std::vector<std::int64_t> indices;
            for (const Sample& sample : sampler.Part(batches, rank))
              indices.push_back(sample.index);
            return indices;
          },
          py::arg("batches"), py::arg("rank"))
      .def("within_epoch", &Sampler::WithinEpoch, py::arg("batches"))
      .def("advance", &Sampler::Advance, py::arg("batches"))
      .def_property_readonly("cursor", &Sampler::cursor)
      .def_property_readonly("epoch", &Sampler::epoch);

  static_assert(
      std::is_trivially_copyable_v<NoiseScale> && sizeof(NoiseScale) == 4 * sizeof(double),
      "the state of a noise scale is its four numbers");
  using NoiseState = std::array<double, 4>;
  py::class_<NoiseScale>(module, "NoiseScale")
      .def(py::init<double>(), py::arg("memory") = 0.95)
      .def(
          "add",
          [](NoiseScale& noise, double weighted, double squared, double samples, int workers) {
            noise.Add(EstimateNoise(weighted, squared, samples, workers));
          },
          py::arg("weighted_squared_norms"), py::arg("squared_norm"), py::arg("samples"),
          py::arg("workers"))
      .def_property_readonly("value", &NoiseScale::value)
      .def("state", [](const NoiseScale& noise) { return std::bit_cast<NoiseState>(noise); })
      .def("restore", [](NoiseScale& noise, const NoiseState& state) {
        noise = std::bit_cast<NoiseScale>(state);
      });

  BindSquares(module);

  module.def(
      "learning_rate_factor",
      [](const std::string& rule, double global_batch, double base_batch, double noise_scale) {
        return LearningRateFactor(RuleNamed(rule), global_batch, base_batch, noise_scale);
      },
      py::arg("rule"), py::arg("global_batch"), py::arg("base_batch"), py::arg("noise_scale"));
  module.def("require_in_range", &RequireInRange<std::int64_t>, py::arg("field"), py::arg("value"),
             py::arg("low"), py::arg("high"));
}

}  // namespace

void BindCore(py::module_& module) {
  BindReports(module);
  BindRounds(module);
  BindArithmetic(module);
}

}  // namespace dynamix
