#include "dynamix/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "dynamix/core/input_error.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/web_server.h"

namespace dynamix {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::size_t kMostJobs = 128;
constexpr std::size_t kMostRanks = 256;
const Histogram::BucketBoundaries kIterationSeconds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                                       1,     3,     10,   30,   100};

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
    const bool secure = !used.empty();
    const auto page = [this, secure](const WebRequest& request) {
      if (secure && !MayReadMetrics(request.peer_names)) return WebAnswer{.status = 403};
      return WebAnswer{.type = "text/plain; version=0.0.4; charset=utf-8",
                       .body = prometheus::TextSerializer().Serialize(registry_.Collect())};
    };
    Result<std::unique_ptr<WebServer>> started =
        WebServer::Start({.address = address_, .tls = used}, {{"/metrics", page}});
    if (!started) return Error{"metrics: " + started.error()};
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
    const Round& round = record.round;
    job.rounds->Increment();
    job.late->Increment(record.late);
    job.global_batch->Set(round.GlobalBatch());
    job.window_seconds->Set(round.seconds);
    job.fallback->Set(decision.guard == Guard::State::kFallsBack ? 1 : 0);
    Follow(*job.fallbacks, job.last_fallbacks, record.fallbacks);
    job.updates->Set(record.updates);
    job.standing->Set(IsMissing(decision.standing) ? 1 : decision.standing);
    if (const double loss = MeanLoss(round); !IsMissing(loss)) job.loss->Set(loss);
    AddTraining(job, round);
    if (decision.policy != job.policy_name) SetPolicy(job, record.job, decision.policy);
    for (std::size_t rank = 0; rank < std::min(decision.sizes.size(), kMostRanks); ++rank) {
      if (rank == job.ranks.size()) job.ranks.emplace_back();
      const prometheus::Labels labels = {{"job", record.job}, {"rank", std::to_string(rank)}};
      Set(job.ranks[rank][&batches_], batches_, labels, decision.sizes[rank]);
      if (rank < round.entries.size() && round.entries[rank].report)
        AddReport(job.ranks[rank], labels, *round.entries[rank].report);
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
  using RankSeries = std::map<Family<Gauge>*, Gauge*>;  // those that were ever measured
  struct JobSeries {
    Counter *rounds, *late, *fallbacks, *samples;
    Gauge *global_batch, *window_seconds, *fallback, *updates, *standing, *loss;
    Histogram* iterations;
    Gauge *accuracy = nullptr, *noise = nullptr, *rate = nullptr;  // null: never measured
    Gauge* policy = nullptr;
    std::string name, policy_name;
    std::vector<RankSeries> ranks;
    int last_fallbacks = 0;   // of the run under way
    std::uint64_t heard = 0;  // the larger, the later
  };

  // What was not measured keeps its last value; what never was has no series.
  static void Set(Gauge*& gauge, Family<Gauge>& family, const prometheus::Labels& labels,
                  double value) {
    if (IsMissing(value)) return;
    if (gauge == nullptr) gauge = &family.Add(labels);
    gauge->Set(value);
  }

  // What all workers share: the first report tells it.
  void AddTraining(JobSeries& job, const Round& round) {
    int iterations = 0;
    const Report* first = nullptr;
    for (const RoundEntry& entry : round.entries) {
      if (!entry.report) continue;
      if (first == nullptr) first = &*entry.report;
      iterations = std::max(iterations, entry.report->iterations);
    }
    if (first == nullptr) return;
    job.samples->Increment(iterations * round.GlobalBatch());
    if (!IsMissing(first->iteration_ms)) job.iterations->Observe(1e-3 * first->iteration_ms);
    const prometheus::Labels labels = {{"job", job.name}};
    Set(job.accuracy, accuracy_, labels, first->training.accuracy);
    Set(job.noise, noise_, labels, first->training.noise_scale);
    Set(job.rate, learning_rate_, labels, first->training.learning_rate);
  }

  void AddReport(RankSeries& series, const prometheus::Labels& labels, const Report& report) {
    const auto set = [&](Family<Gauge>& family, double value) {
      if (!IsMissing(value)) Set(series[&family], family, labels, value);
    };
    set(compute_, 1e-3 * report.compute_ms);
    set(wait_, 1e-3 * report.wait_ms);
    set(communication_, 1e-3 * report.communication_ms);
    set(rtt_, 1e-6 * report.network.smoothed_rtt_us);
    set(retransmissions_, report.network.retransmission_ratio);
    set(cpu_, report.host.cpu_use);
  }

  void SetPolicy(JobSeries& job, const std::string& name, const std::string& policy) {
    if (job.policy != nullptr) policy_.Remove(job.policy);
    job.policy = &policy_.Add({{"job", name}, {"policy", policy}});
    job.policy->Set(1);
    job.policy_name = policy;
  }

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
                          .samples = &samples_.Add(label),
                          .global_batch = &global_batch_.Add(label),
                          .window_seconds = &window_seconds_.Add(label),
                          .fallback = &fallback_.Add(label),
                          .updates = &updates_.Add(label),
                          .standing = &standing_.Add(label),
                          .loss = &loss_.Add(label),
                          .iterations = &iterations_.Add(label, kIterationSeconds),
                          .name = name,
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
    samples_.Remove(job.samples);
    iterations_.Remove(job.iterations);
    if (job.accuracy != nullptr) accuracy_.Remove(job.accuracy);
    if (job.noise != nullptr) noise_.Remove(job.noise);
    if (job.rate != nullptr) learning_rate_.Remove(job.rate);
    if (job.policy != nullptr) policy_.Remove(job.policy);
    for (const RankSeries& rank : job.ranks)
      for (const auto& [family, gauge] : rank) family->Remove(gauge);
    jobs_.erase(silent);
  }

  std::string address_;
  mutable std::mutex server_mutex_;
  std::unique_ptr<WebServer> server_;
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
  Family<Gauge>& compute_ = AddGauge("dynamix_compute_seconds", "Compute of an iteration");
  Family<Gauge>& wait_ = AddGauge("dynamix_wait_seconds", "Wait for the slowest worker");
  Family<Gauge>& communication_ =
      AddGauge("dynamix_communication_seconds", "Exchange of an iteration, not hidden");
  Family<Gauge>& rtt_ = AddGauge("dynamix_rtt_seconds", "Smoothed round-trip time");
  Family<Gauge>& retransmissions_ =
      AddGauge("dynamix_retransmission_ratio", "Retransmitted over sent segments");
  Family<Gauge>& cpu_ = AddGauge("dynamix_cpu_use_ratio", "CPU time over the allotted");
  Family<Gauge>& accuracy_ = AddGauge("dynamix_training_accuracy_ratio", "Reported accuracy");
  Family<Gauge>& noise_ = AddGauge("dynamix_noise_scale", "Gradient noise scale in samples");
  Family<Gauge>& learning_rate_ = AddGauge("dynamix_learning_rate", "Learning rate in force");
  Family<Gauge>& policy_ = AddGauge("dynamix_policy_info", "1 for the policy in force");
  Family<Counter>& samples_ = AddCounter("dynamix_samples_total", "Samples trained on");
  Family<Histogram>& iterations_ = prometheus::BuildHistogram()
                                       .Name("dynamix_iteration_seconds")
                                       .Help("Length of iterations, one observation per round")
                                       .Register(registry_);
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
  RequireHostPort("metrics", address);
  if (tls.empty() && !IsLoopback(address))
    throw InputError::OutOfRange(
        "metrics", address,
        "a loopback address, or certificates for any other (scripts/make-certs)");
  auto implementation = std::make_unique<Implementation>(address);
  if (Status serves = implementation->Serve(tls); !serves) return Error{serves.error()};
  return std::unique_ptr<Metrics>(new Metrics(std::move(implementation)));
}

Status Metrics::SetTls(const TlsFiles& tls) { return implementation_->Serve(tls); }
int Metrics::port() const { return implementation_->port(); }
void Metrics::Add(const RoundRecord& record) { implementation_->Add(record); }
void Metrics::Set(const ServiceCounts& counts) { implementation_->Set(counts); }

}  // namespace dynamix
