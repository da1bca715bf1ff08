#include "dynamix/training/live_job.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/training/settings.h"

namespace dynamix {
namespace {

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// In an elastic group a rank that leaves while others are in their last collective would be taken
// for lost, and they would end the job once more. Whether this one is whole does not matter. Ranks
// end alike: of elastic ranks one that ends well is enough for whoever started them.
Status LeaveTogether(WorkerGroup& group, Status saved) {
  double failed[] = {saved ? 0.0 : 1.0};
  if (group.elastic() && group.AllReduce(failed) && failed[0] > 0 && saved)
    return Error{"the first rank could not write the last checkpoint"};
  return saved;
}

}  // namespace

LiveJob::LiveJob(WorkerGroup& group, Worker& worker, Classifier& classifier, Advisor* advisor,
                 const LiveJobOptions& options)
    : group_(group),
      worker_(worker),
      classifier_(classifier),
      advisor_(advisor),
      options_(options) {
  RequireInRange("most_seconds", options.most_seconds, 0.0, 1e9);
  RequireInRange("evaluate_windows", options.evaluate_windows, 1, 1 << 24);
  RequireInRange("checkpoint_windows", options.checkpoint_windows, 1, 1 << 24);
  worker_.Carry({.save =
                     [this] {
                       return std::vector<double>{state_.seconds, state_.accuracy, state_.loss,
                                                  state_.reached ? 1.0 : 0.0,
                                                  state_.time_to_target_s};
                     },
                 .restore =
                     [this](const std::vector<double>& numbers) {
                       state_.seconds = numbers[0];
                       state_.accuracy = numbers[1];
                       state_.loss = numbers[2];
                       state_.reached = numbers[3] > 0;
                       state_.time_to_target_s = numbers[4];
                     }});
}

Status LiveJob::Start() {
  if (worker_.joined()) {
    ReadProgress();
    return Nothing{};
  }
  if (options_.resume) {
    if (Status done = Resume(); !done) return done;
  } else if (group_.rank() == 0 && !options_.folder.empty()) {
    if (Status done = RemoveCheckpoints(options_.folder); !done) return done;
  }
  return Evaluate();
}

Result<Checkpoint> LiveJob::Load() const {
  Result<Checkpoint> loaded = LoadCheckpoint(options_.folder);
  if (!loaded) return loaded;
  if (loaded.value().job != options_.name)
    throw InputError("the checkpoint in " + options_.folder.string() + " is of `" +
                     loaded.value().job + "`, this job is `" + options_.name + "`");
  const std::string changes =
      Differences(options_.settings, loaded.value().settings, "the checkpoint");
  if (!changes.empty() && !options_.allow_changed)
    throw InputError("this job is not as the checkpoint in " + options_.folder.string() +
                     " was: " + changes + "; --allow-changed resumes all the same");
  return loaded;
}

Status LiveJob::Resume() {
  std::optional<Checkpoint> checkpoint;
  if (HasCheckpoint(options_.folder)) {
    Result<Checkpoint> loaded = Load();
    if (!loaded) return Error{loaded.error()};
    checkpoint = std::move(loaded).value();
  }
  // A rank that sees another folder would train something else.
  const double own = checkpoint ? static_cast<double>(checkpoint->worker.cursor) : -1;
  std::vector<double> all(group_.size());
  if (Status done = group_.AllGather({&own, 1}, all); !done) return done;
  for (int rank = 0; rank < group_.size(); ++rank)
    if (all[rank] != own)
      return Error{"rank " + std::to_string(rank) + " found another checkpoint in " +
                   options_.folder.string() + " than rank " + std::to_string(group_.rank()) +
                   ", or none: all ranks need the same folder"};
  if (!checkpoint) return Nothing{};
  worker_.Restore(checkpoint->worker);
  // What a policy remembers is of as many workers as it had.
  const bool as_many = std::ssize(checkpoint->worker.batches) == group_.slots();
  if (advisor_ != nullptr && as_many)
    if (Status done = advisor_->Restore(checkpoint->advisor); !done) return done;
  state_.seconds = checkpoint->seconds;
  state_.reached = checkpoint->time_to_target_s > 0;
  state_.time_to_target_s = checkpoint->time_to_target_s;
  if (!checkpoint->refused.empty())
    state_.warning = checkpoint->refused + "; the one before is used";
  return Nothing{};
}

void LiveJob::ReadProgress() {
  state_.samples = static_cast<double>(worker_.samples_seen());
  state_.progress = worker_.progress();
}

bool LiveJob::AtEnd() const {
  return state_.progress >= 1 || (options_.stop_at_target && state_.reached) ||
         (options_.most_seconds > 0 && state_.seconds >= options_.most_seconds);
}

Status LiveJob::Run(const std::function<bool()>& stop, const std::function<void()>& on_window) {
  bool ended = AtEnd();
  while (!ended) {
    const Clock::time_point start = Clock::now();
    if (Status done = worker_.Iterate(stop()); !done) return done;
    state_.seconds += SecondsSince(start);
    ReadProgress();
    if (worker_.stopping()) {
      state_.stopped = true;
      Status saved = worker_.Together(Worker::kSaved, [this] { return Save(/*last=*/true); });
      return LeaveTogether(group_, std::move(saved));
    }
    if (!worker_.window_ended()) {
      ended = state_.progress >= 1;
      continue;
    }
    if (Status done = EndWindow(); !done) return done;
    if (on_window) on_window();
    ended = AtEnd();
  }
  Status evaluated = worker_.Together(Worker::kEnded, [this] { return Evaluate(); });
  if (!evaluated) return evaluated;
  Status saved = worker_.Together(Worker::kLastSaved, [this] { return Save(/*last=*/true); });
  return LeaveTogether(group_, std::move(saved));
}

Status LiveJob::EndWindow() {
  EndWriting(/*wait=*/false);
  Status done = worker_.Together(Worker::kTimed, [this] { return AgreeOnTime(); });
  if (done && worker_.windows() % options_.evaluate_windows == 0)
    done = worker_.Together(Worker::kEvaluated, [this] { return Evaluate(); });
  if (done && worker_.windows() % options_.checkpoint_windows == 0)
    done = worker_.Together(Worker::kSaved, [this] { return Save(/*last=*/false); });
  ReadProgress();
  return done;
}

// Ranks measure their own time; those that end a job by it must end in the same iteration.
Status LiveJob::AgreeOnTime() {
  if (options_.most_seconds <= 0) return Nothing{};
  return group_.Broadcast(std::span<double>(&state_.seconds, 1));
}

Status LiveJob::Evaluate() {
  ReadProgress();
  if (Status done = worker_.AverageBuffers(); !done) return done;
  const int all = HeldOutSamples(classifier_.reader().data(), options_.held_out_samples, 10000);
  const int first =
      static_cast<int>(static_cast<std::int64_t>(all) * group_.rank() / group_.size());
  const int last =
      static_cast<int>(static_cast<std::int64_t>(all) * (group_.rank() + 1) / group_.size());
  const PassSums own = classifier_.Evaluate(first, last - first);
  double sums[] = {own.samples, own.loss, own.correct};
  if (Status done = group_.AllReduce(sums); !done) return done;
  state_.loss = sums[1] / sums[0];
  state_.accuracy = sums[2] / sums[0];
  const bool good = (options_.target_accuracy > 0 && state_.accuracy >= options_.target_accuracy) ||
                    (options_.target_loss > 0 && state_.loss <= options_.target_loss);
  if (good && !state_.reached) {
    state_.reached = true;
    state_.time_to_target_s = state_.seconds;
  }
  return Nothing{};
}

void LiveJob::EndWriting(bool wait) {
  if (!writing_.valid()) return;
  if (!wait && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) return;
  // Hours of training matter more, and the next one may succeed.
  if (Status written = writing_.get(); !written)
    state_.warning = written.error() + "; training goes on";
}

Status LiveJob::Save(bool last) {
  if (options_.folder.empty()) return Nothing{};
  // One rank writes at a time: whoever was the first has finished when all have met in Save.
  EndWriting(last || group_.rank() != 0);
  Result<WorkerState> saved = worker_.Save();
  if (!saved) return Error{saved.error()};
  if (group_.rank() != 0) return Nothing{};
  if (writing_.valid()) {
    state_.warning = "a checkpoint is left out: the disk has not taken the one before yet";
    return Nothing{};
  }
  Checkpoint checkpoint;
  checkpoint.job = options_.name;
  checkpoint.settings = options_.settings;
  checkpoint.seconds = state_.seconds;
  checkpoint.time_to_target_s = state_.reached ? state_.time_to_target_s : 0;
  checkpoint.worker = std::move(saved).value();
  if (advisor_ != nullptr) checkpoint.advisor = advisor_->Save();
  if (last) return SaveCheckpoint(options_.folder, checkpoint);
  // Deferred, to the end of the next window, when the system refuses a thread.
  writing_ = std::async(std::launch::async | std::launch::deferred,
                        [folder = options_.folder, checkpoint = std::move(checkpoint)] {
                          return SaveCheckpoint(folder, checkpoint);
                        });
  return Nothing{};
}

}  // namespace dynamix
