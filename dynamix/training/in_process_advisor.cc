#include "dynamix/training/in_process_advisor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/make_round.h"

namespace dynamix {

InProcessAdvisor::InProcessAdvisor(WorkerGroup& group, const JobSettings& settings, Decide decide,
                                   OnRound on_round)
    : group_(group),
      settings_(settings),
      decide_(std::move(decide)),
      on_round_(std::move(on_round)) {}

Round InProcessAdvisor::MakeRound(std::int64_t index, const std::vector<double>& packed) const {
  std::vector<RoundEntry> entries;
  for (std::size_t at = 0; at < packed.size(); at += kPackedEntry)
    entries.push_back(UnpackEntry(packed.data() + at));
  return dynamix::MakeRound(index, settings_, std::move(entries));
}

Status InProcessAdvisor::Submit(std::int64_t index, const RoundEntry& entry) {
  batch_.reset();
  const std::size_t size = group_.size();
  std::vector<double> packed(size * kPackedEntry), sizes(size);
  Status gathered = group_.AllGather(PackEntry(entry), packed);
  if (!gathered) return gathered;
  if (group_.rank() == 0) {
    const Round round = MakeRound(index, packed);
    const std::vector<int> decided = decide_(round);
    DYNAMIX_CHECK(decided.size() == size, "one size per worker");
    std::copy(decided.begin(), decided.end(), sizes.begin());
    if (on_round_) on_round_(round, decided);
    history_.push_back(static_cast<double>(index));
    history_.insert(history_.end(), packed.begin(), packed.end());
  }
  Status sent = group_.Broadcast(std::span<double>(sizes));
  if (sent) batch_ = static_cast<int>(sizes[group_.rank()]);
  return sent;
}

Answer InProcessAdvisor::Poll() { return {.ready = true, .batch = batch_}; }

std::string InProcessAdvisor::Save() const {
  if (history_.empty()) return "";
  std::vector<double> numbers = {kPackedEntry};
  numbers.insert(numbers.end(), history_.begin(), history_.end());
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}

Status InProcessAdvisor::Restore(const std::string& state) {
  const std::size_t stride = 1 + kPackedEntry * static_cast<std::size_t>(group_.size());
  history_.assign(state.size() / sizeof(double), 0.0);
  std::memcpy(history_.data(), state.data(), history_.size() * sizeof(double));
  if (!history_.empty()) {
    if (history_.front() != kPackedEntry)
      throw InputError(
          "the advisor's state in the checkpoint is of a version whose reports have other fields");
    history_.erase(history_.begin());
  }
  if (history_.size() % stride != 0)
    throw InputError(
        "the advisor's state in the checkpoint is of a job with another number of ranks");
  // -1: nothing was decided yet.
  std::vector<double> sizes(group_.size(), -1.0);
  for (std::size_t at = 0; group_.rank() == 0 && at < history_.size(); at += stride) {
    const auto first = history_.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<int> decided =
        decide_(MakeRound(static_cast<std::int64_t>(*first),
                          {first + 1, first + static_cast<std::ptrdiff_t>(stride)}));
    std::copy(decided.begin(), decided.end(), sizes.begin());
  }
  batch_.reset();
  if (Status sent = group_.Broadcast(std::span<double>(sizes)); !sent) return sent;
  if (sizes[group_.rank()] >= 0) batch_ = static_cast<int>(sizes[group_.rank()]);
  return Nothing{};
}

}  // namespace dynamix
