#include "dynamix/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "dynamix/core/input_error.h"
#include "dynamix/rpc/metrics_server.h"

namespace dynamix {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;

constexpr std::size_t kMostJobs = 128;
constexpr std::size_t kMostRanks = 256;

// A count starts anew with each run of a job; the counter of the job's name goes on.
void Follow(Counter& counter, int& last, int count) {
  counter.Increment(count >= last ? count - last : count);
  last = count;
}

}  // namespace

class Metrics::Implementation {
 public:
  explicit Implementation(std::string address) : address_(std::move(address)) {}
  ~Implementation() { server_.reset(); }  // it reads the registry

  Status Serve(const TlsFiles& tls) {
    const TlsFiles used = IsLoopback(address_) ? TlsFiles{} : tls;
    if (!used.empty())
      if (const std::string wrong = CheckTls(used); !wrong.empty()) return Error{wrong};
    const std::lock_guard lock(server_mutex_);
    server_.reset();
    Result<std::unique_ptr<MetricsServer>> started = MetricsServer::Start(address_, used, [this] {
      return prometheus::TextSerializer().Serialize(registry_.Collect());
    });
    if (!started) return Error{started.error()};
    server_ = std::move(started).value();
    // The port that was free then is the one people know.
    address_ = address_.substr(0, address_.rfind(':') + 1) + std::to_string(server_->port());
    return Nothing{};
  }

  int port() const {
    const std::lock_guard lock(server_mutex_);
    return server_ ? server_->port() : 0;
  }

  void Add(const RoundRecord& record) {
    const std::lock_guard lock(mutex_);
    JobSeries& job = Find(record.job);
    const Decision& decision = record.decision;
    job.rounds->Increment();
    job.late->Increment(record.late);
    job.global_batch->Set(record.round.GlobalBatch());
    job.window_seconds->Set(record.round.seconds);
    job.fallback->Set(decision.guard == Guard::State::kFallsBack ? 1 : 0);
    Follow(*job.fallbacks, job.last_fallbacks, record.fallbacks);
    job.updates->Set(record.updates);
    job.standing->Set(IsMissing(decision.standing) ? 1 : decision.standing);
    if (const double loss = MeanLoss(record.round); !IsMissing(loss)) job.loss->Set(loss);
    for (std::size_t rank = 0; rank < std::min(decision.sizes.size(), kMostRanks); ++rank) {
      if (rank == job.batches.size())
        job.batches.push_back(&batches_.Add({{"job", record.job}, {"rank", std::to_string(rank)}}));
      job.batches[rank]->Set(decision.sizes[rank]);
    }
  }

  void Set(const ServiceCounts& counts) {
    const std::lock_guard lock(mutex_);
    reports_.Increment(static_cast<double>(counts.reports) - reports_.Value());
    refused_.Increment(static_cast<double>(counts.refused) - refused_.Value());
    lost_.Increment(static_cast<double>(counts.records_dropped) - lost_.Value());
    turned_away_.Increment(static_cast<double>(counts.turned_away) - turned_away_.Value());
    jobs_open_.Set(counts.jobs);
    workers_.Set(counts.workers);
  }

 private:
  struct JobSeries {
    Counter *rounds, *late, *fallbacks;
    Gauge *global_batch, *window_seconds, *fallback, *updates, *standing, *loss;
    std::vector<Gauge*> batches;  // by rank
    int last_fallbacks = 0;       // of the run under way
    std::uint64_t heard = 0;      // the larger, the later
  };

  Family<Counter>& AddCounter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  Family<Gauge>& AddGauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  }

  JobSeries& Find(const std::string& name) {
    ++heard_;
    const auto found = jobs_.find(name);
    if (found != jobs_.end()) {
      found->second.heard = heard_;
      return found->second;
    }
    if (jobs_.size() >= kMostJobs) ForgetSilent();
    const prometheus::Labels label = {{"job", name}};
    return jobs_[name] = {.rounds = &rounds_.Add(label),
                          .late = &late_.Add(label),
                          .fallbacks = &fallbacks_.Add(label),
                          .global_batch = &global_batch_.Add(label),
                          .window_seconds = &window_seconds_.Add(label),
                          .fallback = &fallback_.Add(label),
                          .updates = &updates_.Add(label),
                          .standing = &standing_.Add(label),
                          .loss = &loss_.Add(label),
                          .batches = {},
                          .heard = heard_};
  }

  void ForgetSilent() {
    const auto silent = std::min_element(
        jobs_.begin(), jobs_.end(),
        [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; });
    const JobSeries& job = silent->second;
    rounds_.Remove(job.rounds);
    late_.Remove(job.late);
    fallbacks_.Remove(job.fallbacks);
    global_batch_.Remove(job.global_batch);
    window_seconds_.Remove(job.window_seconds);
    fallback_.Remove(job.fallback);
    updates_.Remove(job.updates);
    standing_.Remove(job.standing);
    loss_.Remove(job.loss);
    for (Gauge* batch : job.batches) batches_.Remove(batch);
    jobs_.erase(silent);
  }

  std::string address_;
  mutable std::mutex server_mutex_;
  std::unique_ptr<MetricsServer> server_;
  prometheus::Registry registry_;
  std::mutex mutex_;
  std::map<std::string, JobSeries> jobs_;
  std::uint64_t heard_ = 0;  // records so far

  Family<Counter>& rounds_ = AddCounter("dynamix_rounds_total", "Rounds closed");
  Family<Counter>& late_ = AddCounter("dynamix_late_reports_total", "Reports a round missed");
  Family<Counter>& fallbacks_ = AddCounter("dynamix_fallbacks_total", "Times the guard fell back");
  Family<Gauge>& global_batch_ = AddGauge("dynamix_global_batch", "Samples of an iteration");
  Family<Gauge>& window_seconds_ = AddGauge("dynamix_window_seconds", "Length of the last window");
  Family<Gauge>& fallback_ = AddGauge("dynamix_fallback", "1 while the guard falls back");
  Family<Gauge>& updates_ = AddGauge("dynamix_learner_updates", "PPO updates made");
  Family<Gauge>& standing_ =
      AddGauge("dynamix_speed_over_start", "Speed over that of the start batches, by the guard");
  Family<Gauge>& loss_ = AddGauge("dynamix_training_loss", "Mean reported training loss");
  Family<Gauge>& batches_ = AddGauge("dynamix_local_batch", "Advised samples of one worker");
  Counter& reports_ = AddCounter("dynamix_reports_total", "Reports taken").Add({});
  Counter& refused_ = AddCounter("dynamix_refused_total", "Calls refused").Add({});
  Counter& turned_away_ =
      AddCounter("dynamix_connections_turned_away_total", "Connections above the limit").Add({});
  Counter& lost_ =
      AddCounter("dynamix_records_lost_total", "Rounds that were not recorded").Add({});
  Gauge& jobs_open_ = AddGauge("dynamix_jobs", "Jobs open").Add({});
  Gauge& workers_ = AddGauge("dynamix_workers", "Workers with a lease").Add({});
};

Metrics::Metrics(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Metrics::~Metrics() = default;

Result<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address, const TlsFiles& tls) {
  if (tls.empty() && !IsLoopback(address))
    throw InputError::OutOfRange("metrics", address,
                                 "a loopback address, or certificates for any other");
  auto implementation = std::make_unique<Implementation>(address);
  if (Status serves = implementation->Serve(tls); !serves) return Error{serves.error()};
  return std::unique_ptr<Metrics>(new Metrics(std::move(implementation)));
}

Status Metrics::SetTls(const TlsFiles& tls) { return implementation_->Serve(tls); }
int Metrics::port() const { return implementation_->port(); }
void Metrics::Add(const RoundRecord& record) { implementation_->Add(record); }
void Metrics::Set(const ServiceCounts& counts) { implementation_->Set(counts); }

}  // namespace dynamix
