// What `dynamix train` was asked to do, and the two descriptions it leads to. Plain values.
#pragma once

#include <filesystem>
#include <string>

#include "dynamix/cli/advisor_flags.h"
#include "dynamix/cli/dashboard_flags.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/evaluation/evaluation.h"
#include "dynamix/host/rank_place.h"
#include "dynamix/job/job_spec.h"
#include "dynamix/record/run_config.h"
#include "dynamix/record/run_folder.h"

namespace dynamix {

struct TrainFlags {
  std::string backend = "virtual";
  std::string workload = "lenet_fashion";
  std::string cluster;  // empty: homogeneous; live then runs unpaced
  std::string policy = "static";
  int workers = 0;  // 0: the cluster's
  int seed = 1;
  int window = kWindowIterations;
  std::string run;   // folder; empty: runs/<workload>-<cluster>-<policy>-<seed>
  std::string data;  // folder of the data set; empty: where it usually is
  bool full = false;
  bool json = false;
  bool no_record = false;
  bool compared = false;  // started by dynamix compare, which says itself how a run goes on
  // Overrides of the workload; 0 and empty leave it as it is.
  std::string model, rule, clock;
  double width = 0, planned_samples = 0, learning_rate = 0;
  double target_accuracy = 0, target_loss = 0;  // at most one
  int start_batch = 0;
  double time_s = 0;  // > 0: run so long on the job's clock, target or not
  int held_out = 0;   // samples that loss and accuracy are measured on; 0: the backend's default
  double epochs = 0;  // > 0: run so many passes over the data set, target or not
  // live
  bool resume = false, allow_changed = false;
  int micro_batch = 256;
  int threads = 1;
  int evaluate_windows = 5, checkpoint_windows = 25;
  double timeout_s = 60;
  std::string interface;
  std::string monitor = "ebpf";  // best source of network measurements
  std::string testbed = "pacing";
  bool elastic = false;  // a lost rank makes the team smaller instead of ending the job
  int min_workers = 1;   // of an elastic job
  int max_workers = 0;   // of an elastic job; 0: as many as it starts with
  bool join = false;     // become one more worker of the job that is under way in the run's folder
  int max_restarts = 0;  // of each lost rank of an elastic job
  bool guard = true;     // compares with the batches at the start, and goes back when advice harms
  DashboardFlags dashboard;
  AdvisorFlags advisor;  // address empty: the arbitrator runs inside rank 0
};

// The job, with overrides applied.
struct TrainJob {
  JobSpec spec;
  PolicySpec policy;
  std::filesystem::path folder;  // empty: nothing is recorded
  std::string name;              // for tables and folders
  std::string training;          // for checkpoints: the same on any number of workers
  std::string config;            // effective, as TOML
  bool elastic = false;          // asked for, or what its cluster needs
};

// Of this process among the ranks of a live job, by its environment or --join.
RankPlace OwnPlace(const TrainFlags& flags);

// Loads what the flags name. Throws InputError.
TrainJob MakeJob(const TrainFlags& flags);

RunConfig ConfigOf(const TrainFlags& flags, const JobSpec& spec);

// What a run adds up to, besides JobResult.
struct RunFigures {
  double seconds = 0;  // on the job's clock
  double samples = 0;
  double iteration_ms = 0;                       // mean
  std::vector<int> first_batches, last_batches;  // one per worker
  // live: time that measuring, deciding and recording took of the job's, on rank 0
  double overhead_share = kMissing;
  // live with pacing: compute measured over compute of the cluster's nodes; well above 1 when the
  // machine is too slow for the cluster
  double pace_ratio = kMissing;
};

// What is told at the end.
nlohmann::json SummaryJson(const TrainFlags& flags, const TrainJob& job, const JobResult& result,
                           const RunFigures& figures);

// This command again, once per rank: on a testbed of the job's cluster when it names one. Ends the
// program with the launcher's exit code when it is not 0.
void LaunchRanks(const TrainFlags& flags, const TrainJob& job);

// Where a rank that comes later finds the others: in the run's folder, which the ranks' machines
// share; empty when it is not recorded.
std::filesystem::path MembersFile(const TrainJob& job);

// One rank of a live job, to its end. Throws Interrupted when it was asked to stop and has saved,
// std::runtime_error when ranks are lost.
void RunLiveRank(const TrainFlags& flags, const TrainJob& job);

// Says at once that rounds are being lost (RunFolder).
void WarnOfLoss(const std::string& sentence);

// Leaves the summary and the report in the run's folder, and prints the run. Throws RecordLost when
// the folder misses something.
void FinishRun(const TrainFlags& flags, const TrainJob& job, RunFolder& folder,
               const nlohmann::json& summary);

}  // namespace dynamix
