// The state encoder: reports to dimensionless states, and the list of features it makes.
//
// Only what a live worker can measure enters. Ratios and logarithms make the state independent of
// units, of the model, of the device and of the number of workers. A feature that cannot be
// computed is missing (NaN), never invented. Every feature is one line of a table in features.cc,
// with name, unit, range and family; docs/metrics.md repeats the tables and a test compares the
// two. Not thread-safe; one encoder per job.
#pragma once

#include <span>
#include <vector>

#include "dynamix/core/policy.h"
#include "dynamix/core/round.h"

namespace dynamix {

class Encoder {
 public:
  // `round` has the same workers in the same slots as the rounds before it; new slots may come at
  // the end.
  States Encode(const Round& round);
  // The next round is the first of a new job.
  void Reset();
  void VisitMemory(Memory& memory) { memory(workers_, job_, landmarks_); }

 private:
  // A batch in force, and when and how it last changed.
  struct BatchMemory {
    double batch = 0;        // 0 before the first round
    double last_change = 0;  // log2
    int change_age = 0;      // rounds since that change
    void Remember(double now);
    void VisitMemory(Memory& memory) { memory(batch, last_change, change_age); }
  };
  // What is remembered of one worker between rounds.
  struct WorkerMemory {
    double samples_per_ms = kMissing;  // smoothed
    BatchMemory batch;
    void VisitMemory(Memory& memory) { memory(samples_per_ms, batch); }
  };
  // What is remembered of the job.
  struct JobMemory {
    BatchMemory batch;             // the mean local batch
    double loss = kMissing;        // smoothed
    double loss_slope = kMissing;  // smoothed relative fall per 20 iterations
    double loss_fall = kMissing;   // smoothed fall per 20 iterations
    double log_noise = kMissing;   // smoothed log2 of the noise scale
    double promised = kMissing;    // smoothed 20 x learning rate x squared gradient norm
    double accuracy = kMissing;    // smoothed
    double accuracy_gain = kMissing;
    double iteration_ms = kMissing;  // of the first measured window
    void VisitMemory(Memory& memory) {
      memory(batch, loss, loss_slope, loss_fall, log_noise, promised, accuracy, accuracy_gain,
             iteration_ms);
    }
  };

  // The features every worker shares, clipped: what the job is configured with, how its training
  // goes, and what its team of workers is like.
  std::vector<float> GlobalRow(const Round& round, const Landmarks& landmarks) const;
  void EncodeTraining(const Round& round, std::span<double> row) const;
  void EncodeTeam(const Round& round, const Landmarks& landmarks, std::span<double> row) const;
  // For each worker its own features, clipped, then the global row.
  std::vector<float> LocalRows(const Round& round, const std::vector<double>& shares,
                               const std::vector<float>& global) const;

  void Remember(const Round& round);
  void RememberTraining(const Round& round);
  std::vector<double> Shares(const Round& round) const;

  std::vector<WorkerMemory> workers_;
  JobMemory job_;
  LandmarkFinder landmarks_;
};

}  // namespace dynamix
