// How a worker goes on after its group lost a rank, or took one in (team.h has the protocol).
//
//   1. the iteration under way is dropped: no weights, optimizer state, cursor or statistics have
//      been touched by it; the exchange goes with its group
//   2. survivors become the next group (WorkerGroup::Reform)
//   3. all say how far they are: iterations, and phases after the last one. Those behind take the
//      state of the furthest; a rank that joins is behind everybody
//   4. the global batch is shared out again, in proportion to the batches that were in force, and so
//      is the one the job started with. Nobody has moved the cursor, so the samples are those of the
//      dropped iteration
//
// A rank that is lost in the middle of this starts it anew: state is taken only when it is whole.
#include <algorithm>
#include <cstring>

#include "dynamix/host/failpoint.h"
#include "dynamix/training/checkpoint.h"
#include "dynamix/training/worker.h"

namespace dynamix {
namespace {

// What each member says of itself, and what the furthest one says for all besides their batches.
enum Own : int { kPosition, kLeast, kMost, kGranularity, kStart, kOwnNumbers };
enum View : int { kStopping, kJobStart, kViewNumbers };

}  // namespace

Status Worker::Together(Phase phase, const std::function<Status()>& work) {
  // A rank that was away for long finds itself in another iteration: this one is behind it.
  while (phase_ < phase && iterations_ == returned_) {
    Status done = work();
    if (done) {
      phase_ = phase;
      break;
    }
    if (!CanRecover()) return done;
    if (Status back = Recover(); !back) return back;
  }
  return Nothing{};
}

void Worker::Carry(const Carried& carried) {
  carried_ = carried;
  if (!carried_numbers_.empty()) carried_.restore(carried_numbers_);
}

Status Worker::Recover(bool take_joiners) {
  while (true) {
    join_asked_ = false;
    exchange_.reset();
    if (Status met = group_.Reform(take_joiners); !met) return met;
    DYNAMIX_FAILPOINT("formed");
    stale_ = stale_ || group_.taken_in();
    MakeExchange();
    Status caught_up = CatchUp();
    if (caught_up || !group_.lost()) return caught_up;
    take_joiners = false;
  }
}

Status Worker::CatchUp() {
  const auto size = static_cast<std::size_t>(group_.size()), slots = std::size_t(group_.slots());
  const double own[] = {static_cast<double>(stale_ ? -1 : position()),
                        static_cast<double>(bounds_.min), static_cast<double>(bounds_.max),
                        static_cast<double>(bounds_.granularity),
                        static_cast<double>(start_batch_)};
  std::vector<double> all(kOwnNumbers * size);
  if (Status status = group_.AllGather(own, all); !status) return status;
  std::size_t source = 0;
  bool behind = false;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const double position = all[rank * kOwnNumbers], furthest = all[source * kOwnNumbers];
    behind = behind || position != furthest;
    if (position > furthest) source = rank;
  }
  if (all[source * kOwnNumbers] < 0) return Error{"nobody is left who has the job's state"};
  const bool self_behind = own[kPosition] < all[source * kOwnNumbers];
  // Batches by slot, then what else the furthest one says.
  std::vector<double> view(slots + kViewNumbers + kCarried);
  for (std::size_t rank = 0; rank < sharing_.size(); ++rank) view[sharing_[rank]] = batches_[rank];
  view[slots + kStopping] = stopping_ ? 1 : 0;
  view[slots + kJobStart] = job_start_;
  if (carried_.save) {
    const std::vector<double> numbers = carried_.save();
    std::copy(numbers.begin(), numbers.end(), view.begin() + slots + kViewNumbers);
  }
  if (Status status = group_.Broadcast(view, static_cast<int>(source)); !status) return status;
  if (behind)
    if (Status taken = TakeStateOf(static_cast<int>(source), self_behind); !taken) return taken;
  if (self_behind) {
    phase_ = static_cast<int>(static_cast<std::int64_t>(all[source * kOwnNumbers]) % kPhases);
    stopping_ = view[slots + kStopping] > 0;
    carried_numbers_.assign(view.end() - kCarried, view.end());
    if (carried_.restore) carried_.restore(carried_numbers_);
    stale_ = false;
  }
  job_start_ = view[slots + kJobStart];
  ShareOut({view.begin(), view.begin() + static_cast<std::ptrdiff_t>(slots)}, all);
  return Nothing{};
}

// The state travels as a checkpoint does, checksum included.
Status Worker::TakeStateOf(int source, bool behind) {
  std::string bytes;
  if (group_.rank() == source) {
    Checkpoint checkpoint;
    checkpoint.worker = Snapshot();
    if (advisor_ != nullptr) checkpoint.advisor = advisor_->Save();
    bytes = EncodeCheckpoint(checkpoint);
    DYNAMIX_FAILPOINT("state");
  }
  double length = static_cast<double>(bytes.size());
  if (Status sent = group_.Broadcast(std::span<double>(&length, 1), source); !sent) return sent;
  std::vector<double> numbers(static_cast<std::size_t>(length) / sizeof(double) + 1);
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  if (Status sent = group_.Broadcast(numbers, source); !sent) return sent;
  bytes.assign(reinterpret_cast<const char*>(numbers.data()), static_cast<std::size_t>(length));
  const Result<Checkpoint> checkpoint = DecodeCheckpoint(bytes);
  if (!checkpoint)
    return Error{"the state of rank " + std::to_string(source) +
                 " did not arrive whole: " + checkpoint.error()};
  // First what can still fail, then everything at once.
  if (advisor_ != nullptr)
    if (Status status = advisor_->Restore(checkpoint.value().advisor); !status) return status;
  if (behind) RestoreShared(checkpoint.value().worker);
  return Nothing{};
}

std::vector<int> Worker::Share(double total, const std::vector<double>& weights,
                               const std::vector<BatchBounds>& bounds) {
  const std::vector<double> shares = Distribute(total, weights, bounds);
  std::vector<int> batches;
  double carry = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    batches.push_back(ClampBatch(shares[i] + carry, 0, bounds[i]));
    carry += shares[i] - batches.back();
  }
  return batches;
}

void Worker::ShareOut(const std::vector<double>& by_slot, const std::vector<double>& members) {
  std::vector<int> shared;
  for (std::size_t slot = 0; slot < by_slot.size(); ++slot)
    if (by_slot[slot] > 0) shared.push_back(static_cast<int>(slot));
  const bool same = shared == group_.members();
  double global_batch = 0;
  for (const double batch : by_slot) global_batch += batch;
  std::vector<double> weights, starts;
  std::vector<BatchBounds> bounds;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const double* own = members.data() + std::size_t{kOwnNumbers} * rank;
    weights.push_back(by_slot[group_.members()[rank]]);
    starts.push_back(weights.back() > 0 ? own[kStart] : 0);
    bounds.push_back({.min = static_cast<int>(own[kLeast]),
                      .max = static_cast<int>(own[kMost]),
                      .granularity = static_cast<int>(own[kGranularity])});
  }
  batches_.assign(weights.begin(), weights.end());
  start_batches_.assign(starts.begin(), starts.end());
  sharing_ = group_.members();
  if (same) return;
  batches_ = Share(global_batch, weights, bounds);
  start_batches_ = Share(job_start_, starts, bounds);
  start_batch_ = start_batches_[group_.rank()];
  // A window's numbers belong to one set of batches, and advice to one group.
  timing_ = {};
  statistics_ = {};
  advice_is_old_ = true;
}

}  // namespace dynamix
