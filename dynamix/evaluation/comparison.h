// What a comparison of policies says, from the summaries of its runs: a table, a sentence, JSON.
//
// A policy's figures are means over its seeds; times to target are geometric means, and a run that
// missed its target counts with the whole time budget (or, without one, with the time it ran),
// marked. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dynamix {

struct ComparedRun {
  std::string policy;
  int seed = 1;
  nlohmann::json summary;  // summary.json; null: the run failed
};

// One policy over its seeds.
struct ComparedPolicy {
  std::string policy;
  int runs = 0, reached = 0;  // that did not fail, that reached the target
  double time_s = 0, accuracy = 0, loss = 0, samples = 0, wait_share = 0, iteration_ms = 0;
  double overhead_share = 0;                     // missing: not measured
  bool by_loss = false;                          // the target is a loss
  bool has_target = true;                        // false: a recorded job that waits for nothing
  std::vector<int> first_batches, last_batches;  // of the first seed
  double shortest_s = 0, longest_s = 0;          // times of its seeds
  std::map<int, nlohmann::json> summaries;       // by seed
};

// In order of first appearance.
std::vector<ComparedPolicy> ComparePolicies(const std::vector<ComparedRun>& runs);

// `width` as of Table::Text.
std::string ComparisonTable(const std::vector<ComparedPolicy>& policies, std::size_t width = 0);

// Who won, and by how much: by time to target, or by quality (the accuracy, or the loss when that is
// the target) when `by_quality` or when nobody reached the target in every run. The first policy is
// what others are measured against.
//
// There is no clear winner when chance explains the lead over the next best: when the 95 % interval
// of the mean difference over seeds (paired by seed, Student's t; of the times their logarithms)
// holds 0. One seed has no interval, and the sentence says so.
std::string Verdict(const std::vector<ComparedPolicy>& policies, bool by_quality);

nlohmann::json ComparisonJson(const std::vector<ComparedPolicy>& policies,
                              const std::vector<ComparedRun>& runs);

}  // namespace dynamix
