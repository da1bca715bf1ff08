#include "dynamix/cli/train_flags.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/terminal.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/page/page.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {

RankPlace OwnPlace(const TrainFlags& flags) {
  RankPlace place = ReadRankPlace([](const char* name) { return std::getenv(name); });
  if (!flags.join) return place;
  place.given = true;
  place.rank = RankPlace::kAnyFree;
  place.size = std::max(1, flags.workers);
  place.store.clear();
  return place;
}

namespace {

nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

const char* KindName(EventKind kind) {
  switch (kind) {
    case EventKind::kSlowdown:
      return "slowdown";
    case EventKind::kBandwidth:
      return "bandwidth";
    case EventKind::kLoss:
      return "loss";
    case EventKind::kLeave:
    case EventKind::kJoin:
      break;
  }
  return "leave";
}

// Those that began while the job ran.
nlohmann::json EventsJson(const TrainFlags& flags, const TrainJob& job, double seconds) {
  nlohmann::json events = nlohmann::json::array();
  if (flags.cluster.empty()) return events;
  for (const TimedEvent& event : EventsOf(job.spec)) {
    if (event.begin_s > seconds) continue;
    events.push_back({{"kind", KindName(event.kind)},
                      {"worker", event.worker},
                      {"begin_s", event.begin_s},
                      {"end_s", Number(event.end_s)},
                      {"factor", event.factor}});
  }
  return events;
}

}  // namespace

RunConfig ConfigOf(const TrainFlags& flags, const JobSpec& spec) {
  return {.backend = flags.backend, .policy = flags.policy, .job = spec, .guard = flags.guard};
}

nlohmann::json SummaryJson(const TrainFlags& flags, const TrainJob& job, const JobResult& result,
                           const RunFigures& figures) {
  nlohmann::json summary = SummaryJson(ConfigOf(flags, job.spec), result, figures.seconds);
  const JobSettings settings = SettingsOf(job.spec.workload);
  summary["target_accuracy"] = Number(settings.target_accuracy);
  summary["target_loss"] = Number(settings.target_loss);
  summary["samples"] = figures.samples;
  summary["iteration_ms"] = figures.iteration_ms;
  summary["first_batches"] = figures.first_batches;
  summary["last_batches"] = figures.last_batches;
  summary["overhead_share"] = Number(figures.overhead_share);
  summary["pace_ratio"] = Number(figures.pace_ratio);
  summary["events"] = EventsJson(flags, job, figures.seconds);
  return summary;
}

void WarnOfLoss(const std::string& sentence) { spdlog::warn("{}", sentence); }

namespace {

void PrintRun(const TrainFlags& flags, const TrainJob& job, const nlohmann::json& summary) {
  if (flags.json) {
    std::printf("%s\n", summary.dump().c_str());
    return;
  }
  Table table(
      {"policy", "reached", "time to target", "accuracy", "loss", "windows", "last global batch"});
  const bool advised = !flags.advisor.address.empty();
  table.Add({advised ? "the arbitrator's" : flags.policy,
             summary["reached"].get<bool>() ? "yes" : "no",
             Fixed(summary["time_to_target_s"].get<double>(), 2) + " s",
             Fixed(summary["accuracy"].get<double>(), 4), Fixed(summary["loss"].get<double>(), 3),
             Fixed(summary["windows"].get<double>(), 0),
             Fixed(summary["last_global_batch"].get<double>(), 0)});
  std::printf("%s\n", table.Text(TerminalWidth(STDOUT_FILENO)).c_str());
  if (!job.folder.empty()) std::printf("left in %s\n", job.folder.c_str());
}

}  // namespace

void FinishRun(const TrainFlags& flags, const TrainJob& job, RunFolder& folder,
               const nlohmann::json& summary) {
  const nlohmann::json left = folder.Finish(summary);
  if (!job.folder.empty() && !flags.advisor.address.empty()) {
    if (!flags.json)
      std::fprintf(
          stderr,
          "the arbitrator has the rounds: dynamix report %s --rounds FOLDER, its folder of "
          "the job, makes the page\n",
          job.folder.c_str());
  } else if (!job.folder.empty()) {
    try {
      Page page{.find_model = FindModel};
      page.runs.push_back(LoadRun(job.folder));
      WritePage((job.folder / "report.html").string(), page);
    } catch (const std::exception& error) {  // the training itself is done and saved
      std::fprintf(stderr, "no report: %s\n", error.what());
    }
  }
  PrintRun(flags, job, left);
  if (const std::string loss = folder.Loss(); !loss.empty()) throw RecordLost(loss);
}

}  // namespace dynamix
