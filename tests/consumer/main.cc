// A real consumer of the installed package: its own job, two workers of speed 1 and 3, made
// adaptive by a rule.
#include <cstdio>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/policies/make_policy.h"

int main() {
  dynamix::Arbitrator arbitrator(dynamix::RuleSpec("balanced"), {.guard = {.on = false}});
  dynamix::Round round;
  round.seconds = 1;
  for (int rank = 0; rank < 2; ++rank) {
    dynamix::RoundEntry entry;
    entry.start_batch = entry.batch = 64;
    dynamix::Report report;
    report.rank = rank;
    report.iterations = 20;
    report.local_batch = 64;
    report.compute_ms = rank == 0 ? 90 : 30;
    report.iteration_ms = 100;
    entry.report = report;
    round.entries.push_back(entry);
  }
  const std::vector<int> sizes = arbitrator.Step(round).sizes;
  std::printf("%d %d\n", sizes[0], sizes[1]);
  return sizes[0] == 32 && sizes[1] == 96 ? 0 : 1;
}
