// Jobs that a policy loses, once more: a time to target hangs on luck, so a job that was lost in one
// run says little by itself. Each is run again with other seeds: of its weights, of the order of its
// samples and of its cluster's events, with a target of its own. Seeds are new, so what they say does
// not depend on why the job was looked at.
//
// All but RunAgain is pure; RunAgain throws what Judge throws.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dynamix/evaluation/judge.h"
#include "dynamix/evaluation/statistics.h"

namespace dynamix {

inline constexpr double kLost = 1.05;  // a job is lost above this ratio to static's time

// Jobs in which `policy` was slower than static by more than that, the worst first.
std::vector<PopulationJob> LostJobs(const Judgement& judgement, const std::string& policy,
                                    double beyond = kLost);

// Each job `seeds` times, with other seeds than the populations have.
std::vector<PopulationJob> WithOtherSeeds(const std::vector<PopulationJob>& jobs, int seeds);

// One job's runs with other seeds.
struct AgainRow {
  std::string job;
  std::vector<double> ratios;  // time over static's, one per seed
  int missed = 0;              // targets that the policy missed,
  int static_missed = 0;       // and static
  Comparison comparison;       // over seeds
  // The interval over seeds lies above kLost: the job is slower, whatever the luck.
  bool regretted() const { return comparison.ratio.jobs > 1 && comparison.ratio.low > kLost; }
};

struct Again {
  std::string policy;
  int seeds = 0;
  int left_out = 0;            // runs whose reference learned too little to set a target
  std::vector<AgainRow> rows;  // none: no job was lost
};

// Runs the jobs that `policy`, one of `policies`, lost in `judgement`.
Again RunAgain(Population population, const Judgement& judgement, const std::string& policy,
               int seeds, const std::vector<PolicySpec>& policies, const VirtualMaker& make,
               const JudgeOptions& options);

std::string AgainText(const Again& again);
nlohmann::json AgainJson(const Again& again);

}  // namespace dynamix
