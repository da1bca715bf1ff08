// What a comparison of policies says, from the summaries of its runs: a table, a sentence, JSON.
//
// A policy's figures are means over its seeds; times to target are geometric means, and a run that
// missed its target counts with the whole time budget (or, without one, with the time it ran),
// marked. Pure.
#pragma once

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
  std::vector<int> first_batches, last_batches;  // of the first seed
};

// In order of first appearance.
std::vector<ComparedPolicy> ComparePolicies(const std::vector<ComparedRun>& runs);

std::string ComparisonTable(const std::vector<ComparedPolicy>& policies);

// Who won, and by how much: by time to target, or by quality (the accuracy, or the loss when that is
// the target) when `by_quality` or when nobody reached the target in every run. The first policy is
// what others are measured against.
std::string Verdict(const std::vector<ComparedPolicy>& policies, bool by_quality);

nlohmann::json ComparisonJson(const std::vector<ComparedPolicy>& policies,
                              const std::vector<ComparedRun>& runs);

}  // namespace dynamix
