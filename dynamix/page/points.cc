#include "dynamix/page/points.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "dynamix/page/text.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

using nlohmann::json;

constexpr int kReasons = 3;  // per decision

// Six digits are more than a chart shows, and a third of the text.
json Number(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

template <typename Value>
json PerWorker(const RecordedRound& round, Value value) {
  json values = json::array();
  for (const Report& report : round.workers)
    values.push_back(report.iterations > 0 ? Number(value(report)) : json());
  return values;
}

// What the decision did to the global batch.
std::string ActionText(const RecordedRound& round, const Reasons& reasons) {
  if (round.guarded) return "guard";
  if (!round.actions) return "size";
  if (!round.actions->team_factor) return TeamActionName(reasons.kind(), round.actions->team);
  const double factor = *round.actions->team_factor;
  char text[32];
  std::snprintf(text, sizeof text, "%s%.2f", factor < 1 ? "/" : "x",
                factor < 1 ? 1 / factor : factor);
  return text;
}

// Whether a worker that is there got another batch.
bool Changed(const RecordedRound& round) {
  for (std::size_t w = 0; w < round.batches.size() && w < round.sizes.size(); ++w)
    if (round.batches[w] > 0 && round.sizes[w] != round.batches[w]) return true;
  return false;
}

json ReasonsJson(const RecordedRound& round, const RecordedRound* previous, Reasons& reasons) {
  json list = json::array();
  if (!Changed(round)) return list;
  if (round.guarded) {
    list.push_back(
        {{"name", "slower than at its start: back to those batches, shared out evenly"}});
    return list;
  }
  for (const Reason& reason : reasons.Of(round, previous, kReasons)) {
    json one = {{"name", reason.feature}, {"value", Number(reason.value)}};
    if (!IsMissing(reason.influence)) one["influence"] = Number(reason.influence);
    list.push_back(std::move(one));
  }
  return list;
}

std::string EventText(const TimedEvent& event) {
  switch (event.kind) {
    case EventKind::kSlowdown:
      return Short(event.factor) + "x slower";
    case EventKind::kBandwidth:
      return "bandwidth x " + Short(event.factor);
    case EventKind::kLoss:
      return "loss +" + Short(100 * event.factor) + " %";
    default:
      return "away";
  }
}

// Events that begin and end together are one band.
json EventsJson(const RunConfig& config) {
  struct Key {
    double begin, end;
    std::string what;
    auto operator<=>(const Key&) const = default;
  };
  json events = json::array();
  if (config.job.scenario.events.empty()) return events;
  std::map<Key, std::string> workers;
  for (const TimedEvent& event : EventsOf(config.job)) {
    std::string& list = workers[{event.begin_s, event.end_s, EventText(event)}];
    list += (list.empty() ? "" : ", ") + std::to_string(event.worker);
  }
  for (const auto& [key, list] : workers)
    events.push_back({{"begin", key.begin},
                      {"end", std::isfinite(key.end) ? json(key.end) : json()},
                      {"label", "worker " + list + " " + key.what}});
  return events;
}

}  // namespace

json PointJson(const RecordedRound& round, const RecordedRound* previous, Reasons& reasons) {
  int iterations = 0, late = 0;
  for (const Report& report : round.workers) {
    iterations = std::max(iterations, report.iterations);
    late += report.iterations == 0 ? 1 : 0;
  }
  const double dt = round.window_seconds;
  return {{"round", round.index},
          {"t", Number(round.seconds)},
          {"dt", Number(dt)},
          {"samples", Number(iterations * round.GlobalBatch())},
          {"accuracy", Number(round.accuracy)},
          {"loss", Number(round.loss)},
          {"train_loss", Number(round.training.loss)},
          {"train_accuracy", Number(round.training.accuracy)},
          {"learning_rate", Number(round.training.learning_rate)},
          {"noise", Number(round.training.noise_scale)},
          {"batches", round.batches},
          {"sizes", round.sizes},
          {"late", late},
          {"compute", PerWorker(round, [](const Report& r) { return r.compute_ms; })},
          {"wait", PerWorker(round, [](const Report& r) { return r.wait_ms; })},
          {"communication", PerWorker(round, [](const Report& r) { return r.communication_ms; })},
          {"rtt_ms",
           PerWorker(round, [](const Report& r) { return 1e-3 * r.network.smoothed_rtt_us; })},
          {"retransmitted",
           PerWorker(round, [](const Report& r) { return 100 * r.network.retransmission_ratio; })},
          {"cpu", PerWorker(round, [](const Report& r) { return 100 * r.host.cpu_use; })},
          {"sent_mbps",
           PerWorker(round, [dt](const Report& r) { return r.network.bytes_sent * 8e-6 / dt; })},
          {"guard", round.guarded},
          {"action", ActionText(round, reasons)},
          {"why", ReasonsJson(round, previous, reasons)}};
}

json ViewConfigJson(const RunConfig& config, const Reasons& reasons) {
  const TargetOptions& target = config.job.workload.target;
  return {{"policy", config.policy},
          {"backend", config.backend},
          {"workers", config.job.workers},
          {"workload", config.job.workload.name},
          {"cluster", config.job.scenario.name},
          {"target",
           {{"value", target.by_loss()    ? target.loss
                      : target.is_named() ? target.accuracy
                                          : 0},
            {"by_loss", target.by_loss()}}},
          {"events", EventsJson(config)},
          {"why_title", reasons.Title()},
          {"why_text", reasons.Explanation()}};
}

}  // namespace dynamix
