// Cluster bootstrap of a geometric mean. Workload w has n_w jobs, its log ratios sum to s_w, there
// are W workloads:
//
//   mean        exp(sum_w s_w / sum_w n_w)
//   draw        W workloads with replacement, each with all its jobs, and their mean
//   interval    the q and 1 - q quantiles of kResamples draws
//   q           Phi(-t * sqrt(W / (W - 1))),  t the 97.5 % quantile of Student's t, W - 1 degrees
//
// (Cameron, Gelbach and Miller 2008: draw the group, not the job; Hesterberg 2015: with q = 2.5 %
// intervals of few groups are too narrow by about this much.) Jobs of a single workload are groups
// of their own: then the interval speaks of that workload alone.
#include "dynamix/evaluation/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "dynamix/core/rng.h"
#include "dynamix/evaluation/pace.h"
#include "dynamix/evaluation/table.h"

namespace dynamix {
namespace {

constexpr int kResamples = 10000;
constexpr std::uint64_t kDrawSeed = 1;

using JobKey = std::tuple<std::string, std::string, int, int>;  // scenario, workload, workers, seed

JobKey KeyOf(const JobResult& r) { return {r.scenario, r.workload, r.workers, r.seed}; }

// Two-sided 95 % quantile of Student's t.
double StudentQuantile(int degrees) {
  constexpr std::array<double, 31> kTable = {
      0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
      2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees < 31 ? kTable[degrees] : 1.96 + 2.4 / degrees;
}

struct Group {
  double sum = 0;  // of log ratios
  int jobs = 0;
};

double DrawMean(Rng& rng, const std::vector<Group>& groups) {
  Group all;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[rng.Below(groups.size())];
    all.sum += group.sum;
    all.jobs += group.jobs;
  }
  return all.sum / all.jobs;
}

// `groups` holds two or more.
void AddBounds(const std::vector<Group>& groups, Interval& interval) {
  Rng rng(kDrawSeed);
  std::vector<double> means(kResamples);
  for (double& mean : means) mean = DrawMean(rng, groups);
  std::sort(means.begin(), means.end());
  const auto count = static_cast<double>(groups.size());
  const double z =
      StudentQuantile(static_cast<int>(groups.size()) - 1) * std::sqrt(count / (count - 1));
  const double q = 0.5 * std::erfc(z / std::sqrt(2.0));
  const auto rank = static_cast<std::size_t>(q * (kResamples - 1));
  interval.low = std::exp(means[rank]);
  interval.high = std::exp(means[kResamples - 1 - rank]);
}

struct LogRatio {
  const JobResult* result;  // of the policy
  double log;
};

// `log(own, other)`: of one job, none when it has no such ratio.
template <typename Log>
std::vector<LogRatio> LogRatios(const std::vector<JobResult>& results, const std::string& policy,
                                const std::string& baseline, Log log) {
  std::map<JobKey, const JobResult*> others;
  for (const JobResult& r : results)
    if (r.policy == baseline) others[KeyOf(r)] = &r;
  std::vector<LogRatio> ratios;
  for (const JobResult& r : results) {
    if (r.policy != policy) continue;
    const auto other = others.find(KeyOf(r));
    if (other == others.end()) continue;
    if (const std::optional<double> found = log(r, *other->second)) ratios.push_back({&r, *found});
  }
  return ratios;
}

std::optional<double> LogTimes(const JobResult& own, const JobResult& other) {
  if (!(own.time_to_target_s > 0) || !(other.time_to_target_s > 0)) return std::nullopt;
  return std::log(own.time_to_target_s / other.time_to_target_s);
}

std::optional<double> LogPaces(const JobResult& own, const JobResult& other) {
  return LogPace(own.curve, other.curve);
}

Interval MakeInterval(const std::vector<LogRatio>& ratios) {
  Interval interval;
  interval.jobs = static_cast<int>(ratios.size());
  if (ratios.empty()) return interval;
  std::map<std::string, Group> by_workload;
  std::vector<Group> by_job;
  double sum = 0;
  for (const LogRatio& ratio : ratios) {
    sum += ratio.log;
    Group& group = by_workload[ratio.result->workload];
    group.sum += ratio.log;
    ++group.jobs;
    by_job.push_back({ratio.log, 1});
  }
  interval.workloads = static_cast<int>(by_workload.size());
  interval.mean = interval.low = interval.high = std::exp(sum / interval.jobs);
  if (interval.jobs < 2) return interval;
  std::vector<Group> groups;
  for (const auto& [name, group] : by_workload) groups.push_back(group);
  AddBounds(groups.size() > 1 ? groups : by_job, interval);
  return interval;
}

void SetWorst(const std::vector<LogRatio>& ratios, double& worst, std::string& job) {
  for (const LogRatio& ratio : ratios) {
    if (std::exp(ratio.log) <= worst) continue;
    worst = std::exp(ratio.log);
    job = JobName(*ratio.result);
  }
}

// The jobs that every one of these policies ran, with their results in the policies' order.
std::vector<std::vector<const JobResult*>> CommonJobs(const std::vector<JobResult>& results,
                                                      const std::vector<std::string>& policies) {
  std::map<JobKey, std::vector<const JobResult*>> found;
  for (const JobResult& r : results) {
    const auto place = std::find(policies.begin(), policies.end(), r.policy);
    if (place == policies.end()) continue;
    std::vector<const JobResult*>& row = found[KeyOf(r)];
    row.resize(policies.size());
    row[place - policies.begin()] = &r;
  }
  std::vector<std::vector<const JobResult*>> jobs;
  for (auto& [job, row] : found)
    if (std::find(row.begin(), row.end(), nullptr) == row.end()) jobs.push_back(std::move(row));
  return jobs;
}

// The last point at or before `at` (by `axis`); the first point when all come later.
const CurvePoint& PointAt(const JobResult& result, double CurvePoint::*axis, double at) {
  const auto after =
      std::upper_bound(result.curve.begin(), result.curve.end(), at,
                       [axis](double value, const CurvePoint& p) { return value < p.*axis; });
  return after == result.curve.begin() ? *after : *(after - 1);
}

// Smallest of the results for which `use` says yes; nothing when it never does.
template <typename Use, typename Value>
std::optional<double> Smallest(const std::vector<const JobResult*>& row, Use use, Value value) {
  std::optional<double> smallest;
  for (const JobResult* r : row)
    if (use(*r)) smallest = std::min(smallest.value_or(HUGE_VAL), value(*r));
  return smallest;
}

struct Moment {
  double seconds, samples;
};

Moment EqualMoment(const std::vector<const JobResult*>& row) {
  const auto reached = [](const JobResult& r) { return r.reached; };
  const auto all = [](const JobResult&) { return true; };
  const auto seconds =
      Smallest(row, reached, [](const JobResult& r) { return r.time_to_target_s; });
  const auto samples = Smallest(row, reached, [](const JobResult& r) { return r.samples; });
  return {seconds ? *seconds
                  : *Smallest(row, all, [](const JobResult& r) { return r.curve.back().seconds; }),
          samples ? *samples
                  : *Smallest(row, all, [](const JobResult& r) { return r.curve.back().samples; })};
}

}  // namespace

Comparison Compare(const std::vector<JobResult>& results, const std::string& policy,
                   const std::string& baseline) {
  const std::vector<LogRatio> ratios = LogRatios(results, policy, baseline, LogTimes);
  const std::vector<LogRatio> paces = LogRatios(results, policy, baseline, LogPaces);
  Comparison comparison{.policy = policy,
                        .baseline = baseline,
                        .ratio = MakeInterval(ratios),
                        .pace = MakeInterval(paces)};
  for (const LogRatio& ratio : ratios) {
    const double value = std::exp(ratio.log);
    if (value < 1 / kTie) {
      ++comparison.wins;
    } else if (value > kTie) {
      ++comparison.losses;
    } else {
      ++comparison.ties;
    }
  }
  SetWorst(ratios, comparison.worst_ratio, comparison.worst_job);
  SetWorst(paces, comparison.worst_pace, comparison.worst_pace_job);
  return comparison;
}

std::string Text(const Interval& interval) {
  if (interval.jobs == 0) return "-";
  const std::string mean = Fixed(interval.mean, 3);
  if (interval.jobs == 1) return mean;
  return mean + " [" + Fixed(interval.low, 2) + ", " + Fixed(interval.high, 2) + "]";
}

std::string Verdict(const Interval& interval) {
  if (!interval.clear()) return "no clear difference";
  return interval.mean < 1 ? "faster" : "slower";
}

std::vector<JobRatio> JobRatios(const std::vector<JobResult>& results, const std::string& policy,
                                const std::string& baseline) {
  std::vector<JobRatio> ratios;
  for (const LogRatio& ratio : LogRatios(results, policy, baseline, LogTimes))
    ratios.push_back({ratio.result->scenario, JobName(*ratio.result), std::exp(ratio.log),
                      ratio.result->reached});
  return ratios;
}

std::string JobName(const JobResult& result) {
  return result.scenario + ", " + result.workload + " x" + std::to_string(result.workers) +
         ", seed " + std::to_string(result.seed);
}

std::vector<EqualFigures> CompareAtEqual(const std::vector<JobResult>& results,
                                         const std::vector<std::string>& policies) {
  std::vector<EqualFigures> figures;
  for (const std::string& policy : policies) figures.push_back({.policy = policy});
  for (const auto& row : CommonJobs(results, policies)) {
    if (std::any_of(row.begin(), row.end(), [](const JobResult* r) { return r->curve.empty(); }))
      continue;
    const Moment moment = EqualMoment(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const CurvePoint& by_time = PointAt(*row[i], &CurvePoint::seconds, moment.seconds);
      const CurvePoint& by_samples = PointAt(*row[i], &CurvePoint::samples, moment.samples);
      figures[i].accuracy_at_time += by_time.accuracy;
      figures[i].loss_at_time += by_time.loss;
      figures[i].accuracy_at_samples += by_samples.accuracy;
      figures[i].loss_at_samples += by_samples.loss;
      ++figures[i].jobs;
    }
  }
  for (EqualFigures& own : figures) {
    if (own.jobs == 0) continue;
    for (double* sum :
         {&own.accuracy_at_time, &own.loss_at_time, &own.accuracy_at_samples, &own.loss_at_samples})
      *sum /= own.jobs;
  }
  return figures;
}

double ReachedShare(const std::vector<JobResult>& results, const std::string& policy) {
  double reached = 0, jobs = 0;
  for (const JobResult& r : results) {
    if (r.policy != policy) continue;
    reached += r.reached;
    ++jobs;
  }
  return jobs > 0 ? reached / jobs : 0;
}

std::string BestOf(const std::vector<JobResult>& results,
                   const std::vector<std::string>& policies) {
  std::vector<double> logs(policies.size());
  const auto jobs = CommonJobs(results, policies);
  if (jobs.empty()) return {};
  for (const auto& row : jobs)
    for (std::size_t i = 0; i < row.size(); ++i) logs[i] += std::log(row[i]->time_to_target_s);
  return policies[std::min_element(logs.begin(), logs.end()) - logs.begin()];
}

}  // namespace dynamix
