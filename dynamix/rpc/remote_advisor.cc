#include "dynamix/rpc/remote_advisor.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/advisor_thread.h"

namespace dynamix {

std::vector<std::string> RemoteAdvisorOptions::AddressList() const {
  std::vector<std::string> list(1);
  for (const char c : addresses) {
    if (c == ',') {
      list.emplace_back();
    } else {
      list.back() += c;
    }
  }
  return list;
}

void RemoteAdvisorOptions::Validate() const {
  for (const std::string& address : AddressList()) {
    const std::optional<HostPort> parsed = ParseHostPort(address);
    if (!address.starts_with("unix:") && (!parsed || parsed->port == 0))
      throw InputError::OutOfRange("advisor", addresses, "HOST:PORT[,HOST:PORT...] or unix:PATH");
  }
  if (const std::string wrong = CheckJobName(job); !wrong.empty())
    throw InputError::OutOfRange("job", job, wrong);
  RequireInRange("size", size, 1, kMaxWorkers);
  RequireInRange("rank", rank, 0, size - 1);
  RequireInRange("timeout_s", timeout_s, 0.01, 600.0);
  RequireInRange("patience_s", patience_s, 0.0, 600.0);
  RequireInRange("opening_s", opening_s, 0.0, 600.0);
  RequireInRange("max_factor", max_factor, 1.0, 1e6);
  RequireInRange("breaker_failures", breaker_failures, 1, 1000);
  RequireInRange("breaker_s", breaker_s, 0.01, 600.0);
}

RemoteAdvisor::RemoteAdvisor(const RemoteAdvisorOptions& options) {
  options.Validate();
  thread_ = std::make_unique<AdvisorThread>(options);
}

RemoteAdvisor::~RemoteAdvisor() = default;

Result<std::optional<int>> RemoteAdvisor::Open(const RoundEntry& entry, double job_start) {
  return thread_->Open(entry, job_start);
}

Status RemoteAdvisor::Submit(std::int64_t index, const RoundEntry& entry) {
  thread_->Submit(index, entry);
  return Nothing{};
}

Answer RemoteAdvisor::Poll() { return thread_->Poll(); }

std::string RemoteAdvisor::Save() const { return std::to_string(thread_->run()); }

// What another kind of advisor saved is of no use here, and no reason to end a job.
Status RemoteAdvisor::Restore(const std::string& saved) {
  std::uint64_t run = 0;
  const auto [end, problem] = std::from_chars(saved.data(), saved.data() + saved.size(), run);
  if (problem == std::errc() && end == saved.data() + saved.size()) thread_->SetRun(run);
  return Nothing{};
}

RemoteAdvisorCounts RemoteAdvisor::counts() const { return thread_->counts(); }

int StepLimit::Apply(int advised, int batch, const BatchBounds& bounds) {
  const int direction = (advised > batch) - (advised < batch);
  if (direction != 0) {
    swings_ = direction == -direction_ ? swings_ + 1 : 0;
    direction_ = direction;
  }
  const double allowed = std::pow(max_factor_, 1.0 / (1 + swings_));
  const double wanted = std::clamp<double>(advised, batch / allowed, batch * allowed);
  return ClampBatch(wanted, batch, bounds);
}

}  // namespace dynamix
