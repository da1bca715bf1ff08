#include "dynamix/evaluation/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace dynamix {
namespace {

using JobKey = std::tuple<std::string, std::string, int, int>;  // scenario, workload, workers, seed
using Group = std::tuple<std::string, std::string, int>;        // all seeds of a job

JobKey KeyOf(const JobResult& r) { return {r.scenario, r.workload, r.workers, r.seed}; }
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

// Two-sided 95 % quantile of Student's t.
double StudentQuantile(int degrees) {
  constexpr std::array<double, 31> kTable = {
      0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
      2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees < 31 ? kTable[degrees] : 1.96 + 2.4 / degrees;
}

Interval GeometricInterval(const std::vector<double>& logs) {
  Interval interval;
  interval.jobs = static_cast<int>(logs.size());
  if (logs.empty()) return interval;
  double sum = 0, squares = 0;
  for (double x : logs) sum += x;
  const double mean = sum / interval.jobs;
  for (double x : logs) squares += (x - mean) * (x - mean);
  interval.mean = interval.low = interval.high = std::exp(mean);
  if (interval.jobs < 2) return interval;
  const double half =
      StudentQuantile(interval.jobs - 1) * std::sqrt(squares / (interval.jobs - 1) / interval.jobs);
  interval.low = std::exp(mean - half);
  interval.high = std::exp(mean + half);
  return interval;
}

}  // namespace

JobResult RunJob(Environment& environment, Arbitrator& arbitrator, double equal_time_s,
                 const WindowCallback& callback, const ReferenceCurve* reference) {
  JobResult result;
  Round round = environment.Reset();
  result.workers = static_cast<int>(round.entries.size());
  result.first_global_batch = round.GlobalBatch();
  double waited = 0, seconds = 0, accuracy_time = -1, last_loss = kMissing;
  while (true) {
    const Truth& truth = environment.truth();
    if (truth.reached && !result.reached) {
      result.reached = true;
      result.time_to_target_s = truth.seconds;
    }
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
  if (!result.reached) result.time_to_target_s = environment.truth().seconds;
  result.last_global_batch = round.GlobalBatch();
  result.mean_wait_share = seconds > 0 ? waited / seconds : 0;
  return result;
}

Interval CompareTimes(const std::vector<JobResult>& results, const std::string& policy,
                      const std::string& baseline) {
  std::map<JobKey, double> baseline_time;
  for (const JobResult& r : results)
    if (r.policy == baseline) baseline_time[KeyOf(r)] = r.time_to_target_s;
  std::vector<double> logs;
  for (const JobResult& r : results) {
    if (r.policy != policy) continue;
    const auto found = baseline_time.find(KeyOf(r));
    if (found == baseline_time.end() || !(found->second > 0) || !(r.time_to_target_s > 0)) continue;
    logs.push_back(std::log(r.time_to_target_s / found->second));
  }
  return GeometricInterval(logs);
}

void AddBestStatic(std::vector<JobResult>& results) {
  // Sum of log times per group and static size; seeds are the same for all sizes of a group.
  std::map<Group, std::map<std::string, double>> totals;
  for (const JobResult& r : results)
    if (r.policy.starts_with("static"))
      totals[GroupOf(r)][r.policy] += std::log(r.time_to_target_s);
  std::vector<JobResult> best;
  for (const JobResult& r : results) {
    if (!r.policy.starts_with("static")) continue;
    const auto& sizes = totals[GroupOf(r)];
    const auto smallest =
        std::min_element(sizes.begin(), sizes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (smallest->first != r.policy) continue;
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
