#include "dynamix/training/in_process_advisor.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/make_round.h"

namespace dynamix {
namespace {

// Begins the state; the number counts its forms.
constexpr std::string_view kMark = "in process 2\n";

// What RemoteAdvisor saves: a number.
bool IsOfRemoteAdvisor(const std::string& state) {
  return std::all_of(state.begin(), state.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

InProcessAdvisor::InProcessAdvisor(WorkerGroup& group, const JobSettings& settings, Decide decide,
                                   OnRound on_round, VisitDecider visit_decider)
    : group_(group),
      settings_(settings),
      decide_(std::move(decide)),
      on_round_(std::move(on_round)),
      visit_decider_(std::move(visit_decider)) {}

Status InProcessAdvisor::Submit(std::int64_t index, const RoundEntry& entry) {
  sizes_.clear();
  const std::size_t size = group_.size();
  std::vector<double> packed(size * kPackedEntry), sizes(size);
  Status gathered = group_.AllGather(PackEntry(entry), packed);
  if (!gathered) return gathered;
  if (group_.rank() == 0) {
    std::vector<RoundEntry> entries;
    for (std::size_t at = 0; at < packed.size(); at += kPackedEntry)
      entries.push_back(UnpackEntry(packed.data() + at));
    const Round round = MakeRound(index, settings_, std::move(entries));
    const std::vector<int> decided = decide_(round);
    DYNAMIX_CHECK(decided.size() == size, "one size per worker");
    std::copy(decided.begin(), decided.end(), sizes.begin());
    if (on_round_) on_round_(round, decided);
  }
  Status sent = group_.Broadcast(std::span<double>(sizes));
  if (sent) sizes_.assign(sizes.begin(), sizes.end());
  return sent;
}

Answer InProcessAdvisor::Poll() {
  if (sizes_.empty()) return {.ready = true, .batch = std::nullopt};
  return {.ready = true, .batch = sizes_[group_.rank()]};
}

std::string InProcessAdvisor::Save() const {
  Memory memory;
  int ranks = group_.size();
  std::vector<int> sizes = sizes_;
  memory(ranks, sizes);
  if (visit_decider_) visit_decider_(memory);
  const auto* bytes = reinterpret_cast<const char*>(memory.numbers().data());
  return std::string(kMark).append(bytes, memory.numbers().size() * sizeof(double));
}

// Every rank reads all of it, so that they agree on what is wrong with it.
Status InProcessAdvisor::Restore(const std::string& state) {
  sizes_.clear();
  if (IsOfRemoteAdvisor(state)) return Nothing{};  // what was known there is lost, the job is not
  if (!state.starts_with(kMark))
    throw InputError("the advisor's state in the checkpoint is of another version");
  std::vector<double> numbers((state.size() - kMark.size()) / sizeof(double));
  std::memcpy(numbers.data(), state.data() + kMark.size(), numbers.size() * sizeof(double));
  Memory memory(std::move(numbers));
  int ranks = 0;
  memory(ranks, sizes_);
  if (ranks != group_.size() || (!sizes_.empty() && std::ssize(sizes_) != ranks))
    throw InputError(
        "the advisor's state in the checkpoint is of a job with another number of ranks");
  if (visit_decider_) visit_decider_(memory);
  memory.ExpectEnd();
  return Nothing{};
}

}  // namespace dynamix
