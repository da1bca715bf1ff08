// A live job on one rank: iterations until its schedule is over, with held-out evaluation,
// checkpoints, and a clock that counts training only.
//
// Every rank has one with the same options. Rank 0 writes checkpoints; all ranks read them, so the
// folder is one that all can see. A job that does not resume replaces what is there. An Error says
// that the ranks are lost, that training diverged or that the last checkpoint could not be written;
// the one before is whole. A checkpoint on the way is written beside the training, and one that
// cannot be written, or takes until the next is due, stops nobody.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/training/checkpoint.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/worker.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

struct LiveJobOptions {
  std::string name;              // what is trained: only checkpoints with the same name are resumed
  double target_accuracy = 0;    // held-out; 0: none
  double target_loss = 0;        // held-out; 0: none
  bool stop_at_target = false;   // else it goes on to the end of its schedule
  double most_seconds = 0;       // ends with the first window after so long; 0: no limit
  int held_out_samples = 0;      // the first so many; 0: 10,000 images, or 625 sequences
  int evaluate_windows = 5;      // evaluate every so many windows, >= 1
  int checkpoint_windows = 25;   // and save, >= 1
  std::filesystem::path folder;  // of checkpoints; empty: none
  bool resume = false;           // from the folder's checkpoint, when there is one
  // "name = value" of everything that decides how the job is trained. A checkpoint that names
  // another value is not resumed, unless that is allowed.
  std::vector<std::string> settings;
  bool allow_changed = false;
};

// How the job stands. Loss and accuracy are held-out, of the last evaluation.
struct LiveJobState {
  double seconds = 0;  // of training, earlier parts of a resumed job included
  double samples = 0;
  double progress = 0;  // part of the schedule that is over
  double accuracy = 0, loss = 0;
  bool reached = false;
  double time_to_target_s = 0;  // when reached
  bool stopped = false;         // by request, saved and resumable
  std::string warning;          // what went wrong with a checkpoint without ending the job
};

class LiveJob {
 public:
  // All are borrowed: the caller owns the job's parts and keeps them until it is done. `advisor`
  // may be null.
  LiveJob(WorkerGroup& group, Worker& worker, Classifier& classifier, Advisor* advisor,
          const LiveJobOptions& options);

  // Resumes when asked to; throws InputError when the checkpoint is of another job.
  Status Start();
  // To the end, or until `stop` (asked in every iteration) is true on some rank. `on_window` is
  // told after every window.
  Status Run(const std::function<bool()>& stop, const std::function<void()>& on_window = {});

  const LiveJobState& state() const { return state_; }
  const Worker& worker() const { return worker_; }

 private:
  Status Resume();
  // Throws InputError when the checkpoint is of another job.
  Result<Checkpoint> Load() const;
  Status EndWindow();
  Status Evaluate();
  Status AgreeOnTime();
  // `last`: nothing comes after it, so it waits for the disk, and failing to write is an Error.
  Status Save(bool last);
  // The end of a checkpoint that was being written; waits for it only when told to.
  void EndWriting(bool wait);
  void ReadProgress();
  bool AtEnd() const;

  WorkerGroup& group_;
  Worker& worker_;
  Classifier& classifier_;
  Advisor* advisor_;
  LiveJobOptions options_;
  LiveJobState state_;
  std::future<Status> writing_;  // a checkpoint, of those that are or were rank 0
};

}  // namespace dynamix
