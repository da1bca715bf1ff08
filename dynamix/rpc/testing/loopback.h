// A service on a free port of loopback, workers that call it, and what they report. For tests of the
// room; nothing here waits for a clock.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/rpc/remote_advisor.h"
#include "dynamix/rpc/service.h"

namespace dynamix {

// Longer than any machine is busy; tests that need a deadline to pass ask for a short one.
inline constexpr double kNeverS = 120;

inline ServiceOptions Options(double round_deadline_s = kNeverS) {
  ServiceOptions options;
  options.gate = {.lease_s = 2 * kNeverS, .round_deadline_s = round_deadline_s};
  options.job_options = [](const std::string&, int) {
    ArbitratorOptions own;
    own.guard.on = false;
    return own;
  };
  return options;
}

inline std::unique_ptr<Service> StartService(const ServiceOptions& options,
                                             const PolicySpec& policy) {
  return std::move(Service::Start(options, policy)).value();
}

inline RemoteAdvisorOptions Client(int port, int rank = 0, int size = 1) {
  RemoteAdvisorOptions options;
  options.addresses = "127.0.0.1:" + std::to_string(port);
  options.rank = rank;
  options.size = size;
  options.timeout_s = options.patience_s = kNeverS;
  options.breaker_s = 0.05;
  return options;
}

inline RoundEntry Entry(int batch) {
  RoundEntry entry{.bounds = {.min = 4, .max = 256}, .start_batch = batch, .batch = batch};
  Report& report = entry.report.emplace();
  report.iterations = 10;
  report.iteration_ms = report.compute_ms = 10;
  report.training.loss = 1;
  return entry;
}

inline Answer Wait(RemoteAdvisor& advisor) {
  for (Answer answer = advisor.Poll();; answer = advisor.Poll()) {
    if (answer.ready) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

inline Answer Ask(RemoteAdvisor& advisor, std::int64_t window, const RoundEntry& entry) {
  (void)advisor.Submit(window, entry);
  return Wait(advisor);
}

}  // namespace dynamix
