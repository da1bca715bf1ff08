#include "dynamix/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <deque>
#include <exception>
#include <map>
#include <mutex>

namespace dynamix {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;

constexpr std::size_t kMostJobs = 128;
constexpr std::size_t kMostRanks = 256;

}  // namespace

class Metrics::Implementation {
 public:
  explicit Implementation(const std::string& address)
      : exposer_(address, 1), registry_(std::make_shared<prometheus::Registry>()) {
    exposer_.RegisterCollectable(registry_);
  }

  int port() const { return exposer_.GetListeningPorts().front(); }

  void Add(const RoundRecord& record) {
    const std::lock_guard lock(mutex_);
    JobSeries& job = Find(record.job);
    const Decision& decision = record.decision;
    job.rounds->Increment();
    job.late->Increment(record.late);
    job.global_batch->Set(record.round.GlobalBatch());
    job.window_seconds->Set(record.round.seconds);
    job.fallback->Set(decision.guard == Guard::State::kFallsBack ? 1 : 0);
    job.fallbacks->Increment(record.fallbacks - job.fallbacks->Value());
    job.updates->Set(record.updates);
    if (!IsMissing(decision.useful_rate)) job.useful_rate->Set(decision.useful_rate);
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
    jobs_open_.Set(counts.jobs);
    workers_.Set(counts.workers);
  }

 private:
  struct JobSeries {
    Counter *rounds, *late, *fallbacks;
    Gauge *global_batch, *window_seconds, *fallback, *updates, *useful_rate, *loss;
    std::vector<Gauge*> batches;  // by rank
  };

  Family<Counter>& AddCounter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
  }
  Family<Gauge>& AddGauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
  }

  JobSeries& Find(const std::string& name) {
    const auto found = jobs_.find(name);
    if (found != jobs_.end()) return found->second;
    if (jobs_.size() >= kMostJobs) Forget(order_.front());
    order_.push_back(name);
    const prometheus::Labels label = {{"job", name}};
    return jobs_[name] = {.rounds = &rounds_.Add(label),
                          .late = &late_.Add(label),
                          .fallbacks = &fallbacks_.Add(label),
                          .global_batch = &global_batch_.Add(label),
                          .window_seconds = &window_seconds_.Add(label),
                          .fallback = &fallback_.Add(label),
                          .updates = &updates_.Add(label),
                          .useful_rate = &useful_rate_.Add(label),
                          .loss = &loss_.Add(label),
                          .batches = {}};
  }

  void Forget(const std::string name) {
    const JobSeries& job = jobs_.at(name);
    rounds_.Remove(job.rounds);
    late_.Remove(job.late);
    fallbacks_.Remove(job.fallbacks);
    global_batch_.Remove(job.global_batch);
    window_seconds_.Remove(job.window_seconds);
    fallback_.Remove(job.fallback);
    updates_.Remove(job.updates);
    useful_rate_.Remove(job.useful_rate);
    loss_.Remove(job.loss);
    for (Gauge* batch : job.batches) batches_.Remove(batch);
    jobs_.erase(name);
    order_.pop_front();
  }

  prometheus::Exposer exposer_;
  const std::shared_ptr<prometheus::Registry> registry_;  // shared: the library wants it so
  std::mutex mutex_;
  std::map<std::string, JobSeries> jobs_;
  std::deque<std::string> order_;  // oldest job first

  Family<Counter>& rounds_ = AddCounter("dynamix_rounds_total", "Rounds closed");
  Family<Counter>& late_ = AddCounter("dynamix_late_reports_total", "Reports a round missed");
  Family<Counter>& fallbacks_ = AddCounter("dynamix_fallbacks_total", "Times the guard fell back");
  Family<Gauge>& global_batch_ = AddGauge("dynamix_global_batch", "Samples of an iteration");
  Family<Gauge>& window_seconds_ = AddGauge("dynamix_window_seconds", "Length of the last window");
  Family<Gauge>& fallback_ = AddGauge("dynamix_fallback", "1 while the guard falls back");
  Family<Gauge>& updates_ = AddGauge("dynamix_learner_updates", "PPO updates made");
  Family<Gauge>& useful_rate_ =
      AddGauge("dynamix_useful_samples_per_second", "Samples/s times their usefulness");
  Family<Gauge>& loss_ = AddGauge("dynamix_training_loss", "Mean reported training loss");
  Family<Gauge>& batches_ = AddGauge("dynamix_local_batch", "Advised samples of one worker");
  Counter& reports_ = AddCounter("dynamix_reports_total", "Reports taken").Add({});
  Counter& refused_ = AddCounter("dynamix_refused_total", "Calls refused").Add({});
  Counter& lost_ =
      AddCounter("dynamix_records_lost_total", "Rounds that were not recorded").Add({});
  Gauge& jobs_open_ = AddGauge("dynamix_jobs", "Jobs open").Add({});
  Gauge& workers_ = AddGauge("dynamix_workers", "Workers with a lease").Add({});
};

Metrics::Metrics(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Metrics::~Metrics() = default;

Result<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address) {
  try {
    return std::unique_ptr<Metrics>(new Metrics(std::make_unique<Implementation>(address)));
  } catch (const std::exception& error) {
    return Error{"cannot serve metrics on " + address + ": " + error.what()};
  }
}

int Metrics::port() const { return implementation_->port(); }
void Metrics::Add(const RoundRecord& record) { implementation_->Add(record); }
void Metrics::Set(const ServiceCounts& counts) { implementation_->Set(counts); }

}  // namespace dynamix
