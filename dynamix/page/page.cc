#include "dynamix/page/page.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/comparison.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/page/assets.h"
#include "dynamix/page/document.h"
#include "dynamix/page/points.h"
#include "dynamix/page/text.h"

namespace dynamix {
namespace {

using nlohmann::json;

constexpr std::size_t kMostValues = 400'000;  // rounds times workers; of more every n-th round

std::string Seconds(double seconds) { return Fixed(seconds, seconds < 100 ? 2 : 0) + " s"; }

// The policy, and what tells its runs apart but their seeds.
std::vector<std::string> Names(const std::vector<RunRecord>& runs) {
  std::set<int> workers;
  std::set<std::string> jobs;
  std::set<ScheduleClock> clocks;
  for (const RunRecord& run : runs) {
    workers.insert(run.config.job.workers);
    jobs.insert(run.config.job.workload.name + " on " + run.config.job.scenario.name);
    clocks.insert(run.config.job.workload.optimizer.clock);
  }
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    const RunConfig& config = run.config;
    std::string name = std::filesystem::path(config.policy).stem().string();
    if (config.policy.find('/') == std::string::npos) name = config.policy;
    if (jobs.size() > 1)
      name += ", " + config.job.workload.name + " on " + config.job.scenario.name;
    if (workers.size() > 1) name += ", " + std::to_string(config.job.workers) + " workers";
    if (clocks.size() > 1)
      name += ", by " + std::string(dynamix::Name(config.job.workload.optimizer.clock));
    names.push_back(std::move(name));
  }
  return names;
}

std::string WithSeed(const std::string& name, const RunRecord& run) {
  return name + ", seed " + std::to_string(run.config.job.seed);
}

std::vector<ComparedRun> Compared(const std::vector<RunRecord>& runs,
                                  const std::vector<std::string>& names) {
  std::vector<ComparedRun> compared;
  for (std::size_t i = 0; i < runs.size(); ++i)
    compared.push_back({names[i], static_cast<int>(runs[i].config.job.seed), SummaryOf(runs[i])});
  return compared;
}

std::string Cell(const std::string& text, const char* kind = "") {
  return std::string("<td") + kind + ">" + text + "</td>";
}

std::string TimeCell(const ComparedPolicy& policy, bool has_target) {
  if (!has_target) return "-";
  if (policy.reached == 0) return "missed";
  const std::string some = policy.reached < policy.runs ? "&gt; " : "";
  const std::string spread = policy.runs > 1 ? "<br><small>" + Seconds(policy.shortest_s) + " to " +
                                                   Seconds(policy.longest_s) + "</small>"
                                             : "";
  return some + Seconds(policy.time_s) + spread;
}

// One row per policy, over its seeds. No row is marked as the best: the verdict says who won.
std::string SummaryTable(const std::vector<ComparedPolicy>& policies, bool has_target) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>policy</th><th>seeds</th><th>time to target</th>"
      "<th>accuracy</th><th>loss</th><th>iteration</th><th>waiting</th><th>samples</th></tr></"
      "thead>"
      "<tbody>";
  const auto number = [](double value, int digits, const char* unit = "") {
    return IsMissing(value) ? std::string("-") : Fixed(value, digits) + unit;
  };
  for (const ComparedPolicy& policy : policies)
    html += "<tr>" + Cell(Escape(policy.policy)) + Cell(std::to_string(policy.runs)) +
            Cell(TimeCell(policy, has_target)) + Cell(number(policy.accuracy, 4)) +
            Cell(number(policy.loss, 3)) + Cell(number(policy.iteration_ms, 1, " ms")) +
            Cell(number(100 * policy.wait_share, 0, " %")) + Cell(number(policy.samples, 0)) +
            "</tr>";
  return html + "</tbody></table></div>";
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
            Escape(WithSeed(names[i], runs[i])) +
            " could not be recorded and are not on this page.</p>";
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

json RunJson(const RunRecord& run, const std::string& name, int color, bool detailed,
             const FindModelFunction& find_model) {
  const std::optional<PolicyModel> model =
      find_model ? find_model(run.config.policy) : std::nullopt;
  Reasons reasons(run.config.policy, model ? &*model : nullptr);
  json points = json::array();
  const std::size_t stride =
      1 + run.rounds.size() * run.rounds.front().batches.size() / kMostValues;
  for (std::size_t r = 0; r < run.rounds.size(); ++r) {
    if (r % stride != 0 && r + 1 < run.rounds.size()) continue;
    json point = PointJson(run.rounds[r], r > 0 ? &run.rounds[r - 1] : nullptr, reasons);
    // Live jobs are evaluated once more after their last round.
    if (r + 1 == run.rounds.size()) {
      if (!IsMissing(run.accuracy)) point["accuracy"] = run.accuracy;
      if (!IsMissing(run.loss)) point["loss"] = run.loss;
    }
    if (detailed)
      points.push_back(std::move(point));
    else
      points.push_back({{"t", point["t"]},
                        {"samples", point["samples"]},
                        {"accuracy", point["accuracy"]},
                        {"loss", point["loss"]}});
  }
  return {{"name", name},
          {"color", color},
          {"config", ViewConfigJson(run.config, reasons)},
          {"points", points}};
}

// Runs of one policy share a colour.
json DataJson(const Page& page, const std::vector<std::string>& names) {
  const bool seeds = std::set<std::string>(names.begin(), names.end()).size() < names.size();
  std::vector<std::string> policies;
  json runs = json::array();
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    auto found = std::find(policies.begin(), policies.end(), names[i]);
    if (found == policies.end()) found = policies.insert(found, names[i]);
    runs.push_back(RunJson(page.runs[i], seeds ? WithSeed(names[i], page.runs[i]) : names[i],
                           static_cast<int>(found - policies.begin()), Detailed(page.runs, i),
                           page.find_model));
  }
  return {{"runs", runs}};
}

std::string Sections(const Page& page, const std::vector<std::string>& names) {
  std::string html;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    if (!Detailed(page.runs, i)) continue;
    html += "<section><h2>" + Escape(WithSeed(names[i], page.runs[i])) + "</h2><p class=\"lead\">" +
            "Data: " + Escape(page.runs[i].name) + "/rounds.jsonl, " +
            std::to_string(page.runs[i].rounds.size()) +
            " rounds; dynamix export makes a table of " + "them.</p><div id=\"run-" +
            std::to_string(i) + "\"></div></section>";
  }
  return html;
}

// What two runs must share to be compared.
std::string JobOf(const RunRecord& run) {
  const JobSpec& job = run.config.job;
  const TargetOptions& target = job.workload.target;
  const std::string goal = target.by_loss()    ? "loss " + Short(target.loss)
                           : target.is_named() ? "accuracy " + Short(target.accuracy)
                                               : "none";
  return job.workload.name + " on " + job.scenario.name + ", " + std::to_string(job.workers) +
         " workers, " + run.config.backend + ", target " + goal;
}

// A suite's page shows several: nobody wins over all of them here.
bool AreOfOneJob(const std::vector<RunRecord>& runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const RunRecord& run) { return JobOf(run) == JobOf(runs.front()); });
}

}  // namespace

void RequireSameJob(const std::vector<RunRecord>& runs) {
  for (const RunRecord& run : runs)
    if (JobOf(run) != JobOf(runs.front()))
      throw InputError("runs of different jobs cannot be compared: " + runs.front().name + " is " +
                       JobOf(runs.front()) + "; " + run.name + " is " + JobOf(run));
}

std::string RenderPage(const Page& page) {
  const RunConfig& first = page.runs.front().config;
  const std::string title = !page.title.empty()
                                ? page.title
                                : first.job.workload.name + " on " + first.job.scenario.name +
                                      ", " + std::to_string(first.job.workers) + " workers";
  const std::vector<std::string> names = Names(page.runs);
  const std::vector<ComparedPolicy> policies = ComparePolicies(Compared(page.runs, names));
  std::string body = "<h1>" + Escape(title) + "</h1>";
  if (policies.size() > 1 && AreOfOneJob(page.runs))
    body += "<p class=\"verdict\">" +
            Escape(page.verdict.empty() ? Verdict(policies, false) : page.verdict) + "</p>";
  body += "<p class=\"lead\">" + Escape(Description(first)) + "</p>" +
          SummaryTable(policies, first.job.workload.target.is_named()) +
          LossText(page.runs, names) + "<div id=\"quality\"></div>";
  if (!page.table.empty())
    body += "<details><summary>As text</summary><pre>" + Escape(page.table) + "</pre></details>";
  body += Sections(page, names);
  return Document(title, body, DataJson(page, names),
                  std::string(kChartsScript) + kRunViewScript + kRunsPageScript);
}

void WritePage(const std::string& path, const Page& page) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  if (const Status written = WriteBytes(path, RenderPage(page)); !written)
    throw std::runtime_error(written.error());
}

}  // namespace dynamix
