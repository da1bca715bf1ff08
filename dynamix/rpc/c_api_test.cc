#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>
#include <thread>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/rpc/advised_worker.h"
#include "dynamix/rpc/dynamix.h"
#include "dynamix/rpc/service.h"

namespace dynamix {
namespace {

// The report that an arbitrator gets of a window of these iterations.
Report ReportOf(const std::vector<dynamix_iteration>& iterations, int monitor = 1) {
  std::promise<Report> arrived;
  ServiceOptions options;
  options.gate = {.lease_s = 240, .round_deadline_s = 120};  // longer than any machine is busy
  options.job_options = [](const std::string&, int) { return ArbitratorOptions{}; };
  options.on_round = [&](const RoundRecord& record) {
    arrived.set_value(*record.round.entries.front().report);
  };
  const auto service = std::move(Service::Start(options, Fixed(40))).value();
  const std::string address = "127.0.0.1:" + std::to_string(service->port());
  dynamix_options worker_options;
  dynamix_options_init(&worker_options);
  worker_options.addresses = address.c_str();
  worker_options.window_iterations = static_cast<int>(iterations.size());
  worker_options.timeout_s = 120;
  worker_options.monitor = monitor;
  dynamix_worker* worker = dynamix_worker_start(&worker_options, nullptr, 0);
  for (const dynamix_iteration& iteration : iterations)
    dynamix_worker_end_iteration(worker, &iteration);
  const Report report = arrived.get_future().get();
  dynamix_worker_stop(worker);
  return report;
}

// In every field another legal value, `scale` times a number that is the field's own.
dynamix_iteration Filled(double scale) {
  dynamix_iteration iteration;
  dynamix_iteration_init(&iteration);
  int number = 0;
  VisitIteration([&](const char*, double& value) { value = scale * ++number; }, iteration);
  return iteration;
}

TEST(CApiTest, EveryFieldOfAnIterationIsReported) {
  dynamix_iteration first = Filled(1.0 / 64), last = Filled(3.0 / 64);
  first.iteration_ms = last.iteration_ms = 1000;  // no part is longer
  std::map<std::string, std::pair<double, double>> given;
  VisitIteration([&](const char* name, double a, double b) { given[name] = {a, b}; }, first, last);
  const Report report = ReportOf({first, last});
  EXPECT_EQ(report.iterations, 2);
  VisitMeasurements(report, [&](const ReportField& field, const auto& value) {
    const double reported = static_cast<double>(value);
    if (field.over == Over::kMean) {
      EXPECT_EQ(reported, (given.at(field.name).first + given.at(field.name).second) / 2)
          << field.name;
    } else if (field.over == Over::kLast) {
      EXPECT_EQ(reported, given.at(field.name).second) << field.name;
    }
  });
}

TEST(CApiTest, AnotherTrainingOfTheSameNameIsRefused) {
  ServiceOptions service_options;
  service_options.gate = {.lease_s = 240, .round_deadline_s = 120};
  const auto service = std::move(Service::Start(service_options, Fixed(40))).value();
  const std::string address = "127.0.0.1:" + std::to_string(service->port());
  std::vector<dynamix_worker*> workers;
  for (int rank = 0; rank < 2; ++rank) {
    dynamix_options options;
    dynamix_options_init(&options);
    options.addresses = address.c_str();
    options.rank = rank;
    options.size = 2;
    options.window_iterations = 1;
    options.timeout_s = 120;
    options.monitor = 0;
    options.run = 111 * (rank + 1);
    workers.push_back(dynamix_worker_start(&options, nullptr, 0));
    dynamix_iteration iteration;
    dynamix_iteration_init(&iteration);
    dynamix_worker_end_iteration(workers.back(), &iteration);
    const auto arrived = [&] {
      return rank == 0 ? service->counts().reports : service->counts().refused;
    };
    while (arrived() == 0) std::this_thread::yield();
  }
  EXPECT_EQ(service->counts().workers, 1);
  for (dynamix_worker* worker : workers) dynamix_worker_stop(worker);
}

TEST(CApiTest, AnIterationStartsWithNothingMeasured) {
  dynamix_iteration iteration;
  dynamix_iteration_init(&iteration);
  const Report report = ReportOf({iteration});
  VisitMeasurements(report, [](const ReportField& field, const auto& value) {
    if (field.over != Over::kWindow) {
      EXPECT_TRUE(IsMissing(static_cast<double>(value))) << field.name;
    }
  });
}

TEST(CApiTest, NetworkAndHostAreMeasuredUnlessSwitchedOff) {
  dynamix_iteration iteration;
  dynamix_iteration_init(&iteration);
  // Which network source there is depends on the privileges; the host's numbers need none.
  EXPECT_GT(ReportOf({iteration}).host.memory_used_bytes, 0);
  const Report none = ReportOf({iteration}, /*monitor=*/0);
  EXPECT_EQ(none.network.tier, NetworkTier::kNone);
  EXPECT_TRUE(IsMissing(none.host.memory_used_bytes));
}

}  // namespace
}  // namespace dynamix
