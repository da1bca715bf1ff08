#include "dynamix/rpc/round_gate.h"

#include <algorithm>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/make_round.h"

namespace dynamix {
namespace {

// Windows a worker may be ahead of the others. A lease of 10 s and windows of 1 ms: others that
// were not heard for so long are not live any more.
constexpr std::int64_t kMostAhead = 10000;

SteadyTime After(SteadyTime now, double seconds) {
  return now +
         std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void GateOptions::Validate() const {
  RequireInRange("lease_s", lease_s, 0.1, 3600.0);
  RequireInRange("round_deadline_s", round_deadline_s, 0.001, std::min(600.0, lease_s));
}

RoundGate::RoundGate(int size, const GateOptions& options) : options_(options), workers_(size) {
  for (Slot& slot : workers_) {
    slot.entry.start_batch = slot.entry.batch = slot.entry.bounds.min;
    slot.entry.active = false;
  }
}

bool RoundGate::IsTooFar(int rank, std::int64_t window, SteadyTime now) const {
  std::optional<std::int64_t> others;
  for (int other = 0; other < size(); ++other)
    if (other != rank && IsLive(other, now))
      others = std::max(others.value_or(0), workers_[other].next_window);
  return others && window - *others > kMostAhead;
}

Status RoundGate::Join(int rank, std::uint64_t incarnation, std::int64_t next_window,
                       SteadyTime now) {
  Slot& slot = workers_[rank];
  if (IsTooFar(rank, next_window, now))
    return Error{"next_window = " + std::to_string(next_window) +
                 " is not allowed: the other workers are not near it"};
  if (slot.joined && incarnation != slot.incarnation) {
    if (incarnation < slot.incarnation && IsLive(rank, now))
      return Error{"a newer process holds rank " + std::to_string(rank)};
    slot.reported = false;  // what the process before it said is void
  }
  const bool fresh = !slot.joined || incarnation != slot.incarnation;
  if (fresh && next_window <= closed_) {
    closed_ = next_window - 1;
    if (open_ && *open_ > next_window) {
      open_.reset();
      for (Slot& other : workers_) other.reported = false;
    }
  }
  slot.joined = true;
  slot.expected = false;
  if (fresh) slot.next_window = next_window;
  slot.incarnation = incarnation;
  slot.lease = After(now, options_.lease_s);
  return Nothing{};
}

void RoundGate::Leave(int rank, std::uint64_t incarnation) {
  Slot& slot = workers_[rank];
  if (!slot.joined || slot.incarnation != incarnation) return;
  slot.joined = slot.reported = false;
}

bool RoundGate::IsLive(int rank, SteadyTime now) const {
  return workers_[rank].joined && now < workers_[rank].lease;
}

int RoundGate::LiveCount(SteadyTime now) const {
  int live = 0;
  for (int rank = 0; rank < size(); ++rank) live += IsLive(rank, now) ? 1 : 0;
  return live;
}

bool RoundGate::AllHeard() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Slot& slot) { return slot.heard; });
}

RoundGate::Arrival RoundGate::Add(int rank, std::uint64_t incarnation, std::int64_t window,
                                  const RoundEntry& entry, SteadyTime now) {
  Slot& slot = workers_[rank];
  if (!slot.joined) return Arrival::kUnknown;
  if (slot.incarnation != incarnation) return Arrival::kReplaced;
  if (IsTooFar(rank, window, now)) return Arrival::kTooFar;
  if (open_ && *open_ < window) return Arrival::kEndsOpen;
  slot.lease = After(now, options_.lease_s);
  slot.next_window = std::max(slot.next_window, window + 1);
  if (window == closed_) return Arrival::kAnswered;
  if (window < closed_ || (open_ && window < *open_)) return Arrival::kStale;
  if (!open_) {
    open_ = window;
    deadline_ = After(now, options_.round_deadline_s);
  }
  slot.reported = slot.heard = true;
  slot.entry = entry;
  return Arrival::kWaits;
}

bool RoundGate::Complete(SteadyTime now) const {
  if (!open_) return false;
  if (now >= deadline_) return true;
  for (int rank = 0; rank < size(); ++rank) {
    const Slot& slot = workers_[rank];
    if (!slot.reported && (slot.expected || IsLive(rank, now))) return false;
  }
  return true;
}

Round RoundGate::Close(const JobSettings& settings, SteadyTime now) {
  DYNAMIX_CHECK(open_.has_value(), "an open round");
  std::vector<RoundEntry> entries;
  for (int rank = 0; rank < size(); ++rank) {
    Slot& slot = workers_[rank];
    RoundEntry& entry = entries.emplace_back(slot.entry);
    entry.active = slot.reported || (slot.heard && IsLive(rank, now));
    if (!slot.reported) entry.report.reset();
    slot.reported = slot.expected = false;
  }
  Round round = MakeRound(*open_, settings, std::move(entries));
  closed_ = round.index;
  open_.reset();
  return round;
}

}  // namespace dynamix
