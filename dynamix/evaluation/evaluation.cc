#include "dynamix/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace dynamix {
namespace {

using Group = std::tuple<std::string, std::string, int>;  // scenario, workload, workers

Group GroupOf(const JobResult& r) { return {r.scenario, r.workload, r.workers}; }

double MeanWaitShare(const Round& round) {
  double sum = 0;
  int count = 0;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.Reported() || !(entry.report->iteration_ms > 0)) continue;
    const double share = entry.report->wait_ms / entry.report->iteration_ms;
    if (IsMissing(share)) continue;
    sum += std::clamp(share, 0.0, 1.0);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

// A window without a new evaluation adds nothing.
void AddPoint(const Truth& truth, std::vector<CurvePoint>& curve) {
  if (!curve.empty() && curve.back().loss == truth.held_out_loss &&
      curve.back().accuracy == truth.held_out_accuracy)
    return;
  curve.push_back({truth.seconds, truth.samples, truth.held_out_loss, truth.held_out_accuracy});
}

// The whole time budget, however the run ended.
double MissedSeconds(const Truth& truth) {
  return std::isfinite(truth.budget_seconds) ? truth.budget_seconds : truth.seconds;
}

}  // namespace

JobResult RunJob(Environment& environment, Arbitrator& arbitrator, double equal_time_s,
                 const WindowCallback& callback, const ReferenceCurve* reference) {
  JobResult result;
  Round round = environment.Start(arbitrator.Open(environment.Opening()));
  result.workers = static_cast<int>(round.entries.size());
  result.first_global_batch = round.GlobalBatch();
  double waited = 0, seconds = 0, accuracy_time = -1, last_loss = kMissing;
  while (true) {
    const Truth& truth = environment.truth();
    if (truth.reached && !result.reached) {
      result.reached = true;
      result.time_to_target_s = truth.seconds;
      result.samples = truth.samples;
    }
    AddPoint(truth, result.curve);
    // Accuracy and loss at the last window that ended before the common time (or the first one after
    // it).
    if (truth.seconds <= equal_time_s || accuracy_time < 0) {
      result.final_accuracy = truth.held_out_accuracy;
      result.final_loss = truth.held_out_loss;
      accuracy_time = truth.seconds;
    }
    waited += MeanWaitShare(round) * round.seconds;
    seconds += round.seconds;
    result.windows += 1;
    const double loss = truth.held_out_loss;
    WindowOutcome outcome;
    if (reference != nullptr && !IsMissing(last_loss))
      outcome.progress_seconds = reference->Tau(loss) - reference->Tau(last_loss);
    last_loss = loss;
    const Decision decision = arbitrator.Step(round, outcome);
    if (callback) callback(round, decision, truth);
    if (truth.out_of_time || (result.reached && truth.seconds >= equal_time_s)) break;
    round = environment.Step(decision.sizes);
  }
  const Truth& last = environment.truth();
  if (!result.reached) {
    result.time_to_target_s = MissedSeconds(last);
    result.samples = last.samples;
  }
  result.curve.push_back({last.seconds, last.samples, last.held_out_loss, last.held_out_accuracy});
  result.last_global_batch = round.GlobalBatch();
  result.mean_wait_share = seconds > 0 ? waited / seconds : 0;
  return result;
}

void AddBestStatic(std::vector<JobResult>& results) {
  // Sum of log times per group and static size; seeds are the same for all sizes of a group.
  std::map<Group, std::map<std::string, double>> totals;
  for (const JobResult& r : results)
    if (r.policy.starts_with("static"))
      totals[GroupOf(r)][r.policy] += r.reached ? std::log(r.time_to_target_s) : HUGE_VAL;
  std::vector<JobResult> best;
  for (const JobResult& r : results) {
    if (!r.policy.starts_with("static")) continue;
    const auto& sizes = totals[GroupOf(r)];
    const auto smallest =
        std::min_element(sizes.begin(), sizes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (smallest->first != r.policy || !std::isfinite(smallest->second)) continue;
    best.push_back(r);
    best.back().policy = "best_static";
  }
  results.insert(results.end(), best.begin(), best.end());
}

std::vector<std::string> PolicyNames(const std::vector<JobResult>& results) {
  std::vector<std::string> names;
  for (const JobResult& r : results)
    if (std::find(names.begin(), names.end(), r.policy) == names.end()) names.push_back(r.policy);
  return names;
}

}  // namespace dynamix
