#include "dynamix/page/judge_page.h"

#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>

#include "dynamix/evaluation/judge_tables.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/page/document.h"
#include "dynamix/page/dot_chart.h"
#include "dynamix/page/text.h"

namespace dynamix {
namespace {

// "judge-07: cnn on fashion_mnist, 16 workers, ...".
std::string Describe(const PopulationJob& job) {
  std::string text = job.name() + ":";
  const char* separator = " ";
  for (const auto& [factor, value] : Factors(job)) {
    text += separator + factor + " " + value;
    separator = ", ";
  }
  return text;
}

std::map<std::string, std::string> Descriptions(const Judgement& judgement) {
  std::map<std::string, std::string> descriptions;  // by job
  for (const PopulationJob& job : judgement.jobs) descriptions[job.name()] = Describe(job);
  return descriptions;
}

std::string DotsAgainst(const Judgement& judgement, const std::string& baseline,
                        const std::string& title) {
  const auto descriptions = Descriptions(judgement);
  DotChart chart{.title = title, .left = "faster than " + baseline, .right = "slower"};
  int color = -1;  // the policy's own in every chart
  for (const JudgedPolicy& policy : judgement.policies) {
    ++color;
    if (policy.name == baseline) continue;
    const Interval interval = Compare(judgement.results, policy.name, baseline).ratio;
    DotRow row{.name = policy.name,
               .color = color,
               .mean = interval.mean,
               .low = interval.low,
               .high = interval.high};
    for (const JobRatio& ratio : JobRatios(judgement.results, policy.name, baseline))
      row.dots.push_back({ratio.ratio,
                          Fixed(ratio.ratio, 3) + (ratio.reached ? "" : ", target missed") +
                              " in " + descriptions.at(ratio.scenario),
                          !ratio.reached});
    chart.rows.push_back(std::move(row));
  }
  return chart.rows.empty() ? "" : RenderDots(chart);
}

// One sentence per policy.
std::string VerdictList(const Judgement& judgement) {
  std::istringstream lines(JudgeVerdict(judgement));
  std::string html = "<ul>";
  for (std::string line; std::getline(lines, line);) html += "<li>" + Escape(line) + "</li>";
  return html + "</ul>";
}

std::string JobTable(const Judgement& judgement) {
  std::map<std::string, std::map<std::string, const JobResult*>> results;  // by job, policy
  for (const JobResult& r : judgement.results) results[r.scenario][r.policy] = &r;
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>job</th><th class=\"text\">what</th>"
      "<th>target</th><th>reference</th>";
  for (const JudgedPolicy& policy : judgement.policies)
    html += "<th>" + Escape(policy.name) + "</th>";
  html += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < judgement.jobs.size(); ++i) {
    const PopulationJob& job = judgement.jobs[i];
    const JobTarget& target = judgement.targets[i];
    html += "<tr><td>" + Escape(job.name()) + "</td><td class=\"text\">" +
            Escape(Describe(job).substr(job.name().size() + 2)) + "</td><td>" +
            (job.target_is_loss ? "loss " + Fixed(target.loss, 3)
                                : "accuracy " + Fixed(target.accuracy, 3)) +
            "</td><td>" + Short(target.reference_s) + " s</td>";
    for (const JudgedPolicy& policy : judgement.policies) {
      const JobResult* r = results[job.name()][policy.name];
      html += r == nullptr ? "<td>-</td>"
                           : "<td>" + std::string(r->reached ? "" : "missed, ") +
                                 Short(r->time_to_target_s) + " s</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

}  // namespace

std::string RenderJudgePage(const Judgement& judgement) {
  const std::string best_rule = BaselinesOf(judgement).best_rule;
  const std::string title =
      "Policies on " + std::to_string(judgement.jobs.size()) + " jobs: " + judgement.suite;
  std::string html =
      "<h1>" + Escape(title) +
      "</h1><p class=\"lead\">A dot is a job: the policy's time to target over another's, on a "
      "logarithmic scale. Hollow: the policy missed the target. Below the dots: geometric mean "
      "and 95 % interval over what is trained.</p>" +
      VerdictList(judgement) + DotsAgainst(judgement, "static", "Time over static's");
  if (!best_rule.empty())
    html += DotsAgainst(judgement, best_rule, "Time over that of the best rule, " + best_rule);
  html += "<details open><summary>Tables</summary><pre>" + Escape(JudgeTables(judgement)) +
          "</pre></details><h2>Jobs</h2>" + JobTable(judgement);
  return Document(title, html);
}

void WriteJudgePage(const std::string& path, const Judgement& judgement) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  if (const Status written = WriteBytes(path, RenderJudgePage(judgement)); !written)
    throw std::runtime_error(written.error());
}

}  // namespace dynamix
