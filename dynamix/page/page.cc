#include "dynamix/page/page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include "dynamix/evaluation/table.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/page/chart.h"
#include "dynamix/page/reasons.h"
#include "dynamix/page/style.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

constexpr int kMostDecisions = 200;  // rows of a table
constexpr int kMostWorkers = 32;     // lines and bars of a chart
constexpr int kReasons = 3;          // per decision

std::string Seconds(double seconds) { return Fixed(seconds, seconds < 100 ? 2 : 0) + " s"; }

// The policy, and what tells its runs apart.
std::vector<std::string> Names(const std::vector<RunRecord>& runs) {
  std::set<int> seeds, workers;
  std::set<std::string> workloads;
  for (const RunRecord& run : runs) {
    seeds.insert(run.config.job.seed);
    workers.insert(run.config.job.workers);
    workloads.insert(run.config.job.workload.name);
  }
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    std::string name = std::filesystem::path(run.config.policy).stem().string();
    if (run.config.policy.find('/') == std::string::npos) name = run.config.policy;
    if (workloads.size() > 1) name += ", " + run.config.job.workload.name;
    if (workers.size() > 1) name += ", " + std::to_string(run.config.job.workers) + " workers";
    if (seeds.size() > 1) name += ", seed " + std::to_string(run.config.job.seed);
    names.push_back(std::move(name));
  }
  return names;
}

// Sums over a run, weighted by iterations.
struct TimeSums {
  double compute = 0, wait = 0, communication = 0, iterations = 0;

  void Add(const Report& times) {
    if (times.iterations == 0 || IsMissing(times.compute_ms)) return;
    compute += times.iterations * times.compute_ms;
    wait += times.iterations * times.wait_ms;
    communication += times.iterations * times.communication_ms;
    iterations += times.iterations;
  }
  double total() const { return compute + wait + communication; }
};

TimeSums AllTimes(const RunRecord& run) {
  TimeSums sums;
  for (const RecordedRound& round : run.rounds)
    for (const Report& times : round.workers) sums.Add(times);
  return sums;
}

std::string Cell(const std::string& text, const char* kind = "") {
  return std::string("<td") + kind + ">" + text + "</td>";
}

std::string SummaryTable(const std::vector<RunRecord>& runs,
                         const std::vector<std::string>& names) {
  double best = HUGE_VAL;
  for (const RunRecord& run : runs)
    if (run.reached) best = std::min(best, run.time_to_target_s);
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>policy</th><th>time to target</th>"
      "<th>accuracy</th><th>loss</th><th>windows</th><th>iteration</th><th>waiting</th><th>global "
      "batch</th>"
      "</tr></thead><tbody>";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const TimeSums sums = AllTimes(run);
    const bool first = run.reached && run.time_to_target_s <= best;
    html += "<tr>" + Cell(Escape(names[i])) +
            Cell(run.reached ? Seconds(run.time_to_target_s) : "missed",
                 first && runs.size() > 1 ? " class=\"best\"" : "") +
            Cell(Fixed(run.accuracy, 4)) + Cell(Fixed(run.loss, 3)) +
            Cell(std::to_string(run.rounds.size())) +
            Cell(Short(sums.iterations > 0 ? sums.total() / sums.iterations : 0) + " ms") +
            Cell(Fixed(sums.total() > 0 ? 100 * sums.wait / sums.total() : 0, 0) + " %") +
            Cell(Short(run.rounds.front().GlobalBatch()) + " &rarr; " +
                 Short(run.rounds.back().GlobalBatch())) +
            "</tr>";
  }
  return html + "</tbody></table></div>";
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
std::vector<ChartBand> Bands(const RunConfig& config) {
  struct Key {
    double begin, end;
    std::string what;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::string> workers;
  for (const TimedEvent& event : EventsOf(config.job)) {
    std::string& list = workers[{event.begin_s, event.end_s, EventText(event)}];
    list += (list.empty() ? "" : ", ") + std::to_string(event.worker);
  }
  std::vector<ChartBand> bands;
  for (const auto& [key, list] : workers)
    bands.push_back({key.begin, key.end, "worker " + list + " " + key.what});
  return bands;
}

double LastSecond(const std::vector<RunRecord>& runs) {
  double last = 0;
  for (const RunRecord& run : runs) last = std::max(last, run.rounds.back().seconds);
  return last;
}

template <typename Value>
ChartLine Line(const RunRecord& run, std::string name, int color, Value value) {
  ChartLine line{.name = std::move(name), .color = color};
  for (const RecordedRound& round : run.rounds) {
    line.x.push_back(round.seconds);
    line.y.push_back(value(round));
  }
  return line;
}

// Accuracy, or loss when that is the target. What matters happens near the end: the first steep part
// is cut off.
Chart QualityChart(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  const TargetOptions& target = runs.front().config.job.workload.target;
  const std::string what = target.by_loss() ? "loss" : "accuracy";
  Chart chart{.title = "Held-out " + what + " over time", .y_name = what};
  const auto quality = [&target](const RecordedRound& round) {
    return target.by_loss() ? round.loss : round.accuracy;
  };
  double best = target.by_loss() ? HUGE_VAL : 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ChartLine line = Line(runs[i], names[i], static_cast<int>(i), quality);
    line.y.back() = target.by_loss() ? runs[i].loss : runs[i].accuracy;
    for (const double y : line.y) best = target.by_loss() ? std::fmin(best, y) : std::fmax(best, y);
    chart.lines.push_back(std::move(line));
  }
  chart.bands = Bands(runs.front().config);
  for (ChartBand& band : chart.bands) band.label.clear();
  (target.by_loss() ? chart.y_high : chart.y_low) = (target.by_loss() ? 2 : 0.75) * best;
  chart.mark = target.by_loss() ? target.loss : target.accuracy;
  chart.mark_name = "target " + Short(chart.mark);
  chart.x_high = LastSecond(runs);
  return chart;
}

// A batch holds from the beginning of its window to the end.
ChartLine BatchLine(const RunRecord& run, std::size_t worker) {
  ChartLine line{.name = "worker " + std::to_string(worker), .color = static_cast<int>(worker)};
  double begin = 0;
  for (const RecordedRound& round : run.rounds) {
    const int batch = worker < round.batches.size() ? round.batches[worker] : 0;
    for (const double x : {begin, round.seconds}) {
      line.x.push_back(x);
      line.y.push_back(batch > 0 ? batch : kMissing);
    }
    begin = round.seconds;
  }
  return line;
}

// A run may be resumed with another number of workers.
std::size_t MostWorkers(const RunRecord& run) {
  std::size_t most = 0;
  for (const RecordedRound& round : run.rounds) most = std::max(most, round.workers.size());
  return most;
}

Chart BatchChart(const RunRecord& run, double x_high) {
  Chart chart{.title = "Each worker's batch", .y_name = "samples", .log2_y = true};
  const std::size_t workers = MostWorkers(run);
  for (std::size_t w = 0; w < std::min<std::size_t>(workers, kMostWorkers); ++w)
    chart.lines.push_back(BatchLine(run, w));
  if (workers > kMostWorkers)
    chart.title +=
        " (the first " + std::to_string(kMostWorkers) + " of " + std::to_string(workers) + ")";
  chart.bands = Bands(run.config);
  chart.x_high = x_high;
  return chart;
}

Chart NoiseChart(const RunRecord& run, double x_high) {
  Chart chart{.title = "Noise scale and global batch",
              .y_name = "samples",
              .x_high = x_high,
              .log2_y = true};
  chart.lines.push_back(Line(run, "gradient noise scale", 4, [](const RecordedRound& round) {
    return round.training.noise_scale;
  }));
  chart.lines.push_back(
      Line(run, "global batch", 2, [](const RecordedRound& round) { return round.GlobalBatch(); }));
  return chart;
}

std::string TimeBars(const RunRecord& run) {
  const std::size_t workers = std::min<std::size_t>(MostWorkers(run), kMostWorkers);
  std::vector<TimeSums> sums(workers);
  double longest = 0;
  for (std::size_t w = 0; w < workers; ++w) {
    for (const RecordedRound& round : run.rounds)
      if (w < round.workers.size()) sums[w].Add(round.workers[w]);
    if (sums[w].iterations > 0) longest = std::max(longest, sums[w].total() / sums[w].iterations);
  }
  std::string html =
      "<figure><figcaption>Where an iteration's time went</figcaption><div class=\"bars\">";
  for (std::size_t w = 0; w < workers; ++w) {
    const TimeSums& own = sums[w];
    html += "<span>worker " + std::to_string(w) + "</span><div class=\"bar\">";
    const auto part = [&](const char* kind, const char* name, double value) {
      const double ms = own.iterations > 0 ? value / own.iterations : 0;
      html += std::string("<i class=\"") + kind + "\" title=\"" + name + " " + Short(ms) +
              " ms\" style=\"width:" + Fixed(longest > 0 ? 100 * ms / longest : 0, 2) + "%\"></i>";
    };
    part("c0", "compute", own.compute);
    part("c3", "wait", own.wait);
    part("c4", "communication", own.communication);
    html += "</div><span>" + Short(own.iterations > 0 ? own.total() / own.iterations : 0) +
            " ms</span>";
  }
  return html +
         "</div><p class=\"legend\"><span><i class=\"c0\"></i>compute</span><span><i "
         "class=\"c3\"></i>wait for the slowest</span><span><i class=\"c4\"></i>communication"
         "</span></p></figure>";
}

std::string BatchesText(const std::vector<int>& batches) {
  std::string text;
  for (std::size_t i = 0; i < batches.size() && i < 16; ++i)
    text += (i > 0 ? " " : "") + std::to_string(batches[i]);
  return batches.size() > 16 ? text + " ..." : text;
}

std::string ReasonsText(const std::vector<Reason>& reasons) {
  std::string text;
  for (const Reason& reason : reasons)
    text += (text.empty() ? "" : ", ") + ("<b>" + reason.feature + "</b> " + Short(reason.value)) +
            " (" + (reason.influence > 0 ? "+" : "") + Fixed(reason.influence, 2) + ")";
  return text;
}

// What the team decision did to the global batch.
std::string TeamText(ActionKind kind, const Actions& actions) {
  if (!actions.team_factor) return TeamActionName(kind, actions.team);
  const double factor = *actions.team_factor;
  return factor < 1 ? "/" + Fixed(1 / factor, 2) : "x" + Fixed(factor, 2);
}

// Whether a worker that is there got another batch.
bool Changed(const RecordedRound& round) {
  for (std::size_t w = 0; w < round.batches.size() && w < round.sizes.size(); ++w)
    if (round.batches[w] > 0 && round.sizes[w] != round.batches[w]) return true;
  return false;
}

// The rounds that changed a batch.
std::string DecisionTable(const RunRecord& run, const FindModelFunction& find_model) {
  const std::optional<PolicyModel> model =
      find_model ? find_model(run.config.policy) : std::nullopt;
  Reasons reasons(model ? &*model : nullptr);
  const ActionKind kind = model ? model->actions.kind : ActionKind::kRelative;
  std::string rows;
  int count = 0, shown = 0;
  for (std::size_t r = 0; r < run.rounds.size(); ++r) {
    const RecordedRound& round = run.rounds[r];
    if (!Changed(round)) continue;
    if (++count > kMostDecisions) continue;
    ++shown;
    rows +=
        "<tr>" + Cell(Seconds(round.seconds)) +
        Cell(round.guarded   ? "guard"
             : round.actions ? Escape(TeamText(kind, *round.actions))
                             : "size") +
        Cell(BatchesText(round.batches) + " &rarr; " + BatchesText(round.sizes),
             " class=\"text\"") +
        Cell(round.guarded
                 ? "slower than at its start: back to those batches, shared out evenly"
                 : ReasonsText(reasons.Of(round, r > 0 ? &run.rounds[r - 1] : nullptr, kReasons)),
             " class=\"text why\"") +
        "</tr>";
  }
  if (count == 0) return "<p class=\"lead\">No decision changed a batch.</p>";
  const std::string what =
      reasons.learned()
          ? "In brackets: how much the feature raised or lowered the global batch, against its "
            "mean in training (in powers of two: +1 doubles it)."
          : "In brackets: change since the round before, in parts of the feature's range.";
  return "<p class=\"lead\">" + std::to_string(count) + " of " + std::to_string(run.rounds.size()) +
         " rounds changed a batch" +
         (shown < count ? " (the first " + std::to_string(shown) + " shown)" : "") + ". " + what +
         "</p><div class=\"scroll\"><table><thead><tr><th>at</th><th>team action</th>"
         "<th class=\"text\">batches</th><th class=\"text\">features that drove "
         "it</th></tr></thead>"
         "<tbody>" +
         rows + "</tbody></table></div>";
}

std::string Description(const RunConfig& config) {
  std::string text = config.job.workload.description;
  if (!text.empty() && !text.ends_with('.')) text += ". ";
  text += config.job.scenario.description;
  return text + " Backend " + config.backend + ", window of " + std::to_string(config.job.window) +
         " iterations.";
}

// What the charts of runs with an incomplete record do not show.
std::string LossText(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  std::string html;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].lost_rounds <= 0) continue;
    html += "<p class=\"lead\">" + std::to_string(runs[i].lost_rounds) + " rounds of " +
            Escape(names[i]) + " could not be recorded and are not on this page.</p>";
  }
  return html;
}

// The runs shown in detail: all of a few, else the first of each policy.
bool Detailed(const std::vector<RunRecord>& runs, std::size_t i) {
  if (runs.size() <= 8) return true;
  for (std::size_t j = 0; j < i; ++j)
    if (runs[j].config.policy == runs[i].config.policy) return false;
  return true;
}

}  // namespace

std::string RenderPage(const Page& page) {
  const RunConfig& first = page.runs.front().config;
  const std::string title = !page.title.empty()
                                ? page.title
                                : first.job.workload.name + " on " + first.job.scenario.name +
                                      ", " + std::to_string(first.job.workers) + " workers";
  const std::vector<std::string> names = Names(page.runs);
  const double x_high = LastSecond(page.runs);
  std::string html = kPageHead;
  html += "<title>" + Escape(title) + "</title></head><body><h1>" + Escape(title) +
          "</h1><p class=\"lead\">" + Escape(Description(first)) + "</p>" +
          SummaryTable(page.runs, names) + LossText(page.runs, names) +
          RenderChart(QualityChart(page.runs, names));
  if (!page.table.empty())
    html +=
        "<details open><summary>All runs</summary><pre>" + Escape(page.table) + "</pre></details>";
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    if (!Detailed(page.runs, i)) continue;
    const RunRecord& run = page.runs[i];
    html += "<section><h2>" + Escape(names[i]) + "</h2>" + RenderChart(BatchChart(run, x_high)) +
            TimeBars(run) + RenderChart(NoiseChart(run, x_high)) +
            DecisionTable(run, page.find_model) + "</section>";
  }
  return html + "</body></html>\n";
}

void WritePage(const std::string& path, const Page& page) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  if (const Status written = WriteBytes(path, RenderPage(page)); !written)
    throw std::runtime_error(written.error());
}

}  // namespace dynamix
