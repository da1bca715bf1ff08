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
                                   OnRound on_round, VisitDecider visit_decider, OpenJob open)
    : group_(group),
      settings_(settings),
      decide_(std::move(decide)),
      on_round_(std::move(on_round)),
      visit_decider_(std::move(visit_decider)),
      open_(std::move(open)) {}

// A slot without a rank keeps what was last known of it; before that, what rank 0 says of itself.
std::vector<RoundEntry> InProcessAdvisor::EntriesBySlot(const std::vector<double>& by_rank) {
  if (last_.empty()) last_.assign(group_.slots(), UnpackEntry(by_rank.data()));
  for (RoundEntry& entry : last_) {
    entry.active = false;
    entry.report.reset();
  }
  for (int rank = 0; rank < group_.size(); ++rank)
    last_[group_.members()[rank]] =
        UnpackEntry(by_rank.data() + std::ptrdiff_t{rank} * kPackedEntry);
  return last_;
}

Result<std::optional<int>> InProcessAdvisor::Open(const RoundEntry& entry, double) {
  RoundEntry own = entry;
  own.report.emplace();  // packed entries have one
  std::vector<double> by_rank(static_cast<std::size_t>(group_.size()) * kPackedEntry);
  std::vector<double> sizes(group_.size());
  if (Status gathered = group_.AllGather(PackEntry(own), by_rank); !gathered)
    return Error{gathered.error()};
  if (group_.rank() == 0 && open_) {
    std::vector<RoundEntry> entries;
    for (int rank = 0; rank < group_.size(); ++rank) {
      entries.push_back(UnpackEntry(by_rank.data() + std::ptrdiff_t{rank} * kPackedEntry));
      entries.back().report.reset();
    }
    const std::vector<int> opened = open_(MakeRound(0, settings_, std::move(entries)));
    DYNAMIX_CHECK(opened.size() == sizes.size(), "one size per worker");
    std::copy(opened.begin(), opened.end(), sizes.begin());
  }
  if (Status sent = group_.Broadcast(std::span<double>(sizes)); !sent) return Error{sent.error()};
  const int size = static_cast<int>(sizes[group_.rank()]);
  return size > 0 ? std::optional<int>(size) : std::nullopt;
}

void InProcessAdvisor::Tell() {
  if (group_.rank() == 0 && on_round_) on_round_(untold_->round, untold_->sizes);
  untold_.reset();
}

Status InProcessAdvisor::Submit(std::int64_t index, const RoundEntry& entry) {
  if (untold_ && untold_->round.index < index) Tell();
  untold_.reset();
  sizes_.clear();
  std::vector<double> by_rank(static_cast<std::size_t>(group_.size()) * kPackedEntry);
  std::vector<double> sizes(group_.slots());
  Status gathered = group_.AllGather(PackEntry(entry), by_rank);
  if (!gathered) return gathered;
  const Round round = MakeRound(index, settings_, EntriesBySlot(by_rank));
  if (group_.rank() == 0) {
    if (behind_) (void)Restore(memory_);
    untold_ = Told{round, decide_(round)};
    DYNAMIX_CHECK(untold_->sizes.size() == sizes.size(), "one size per worker");
    std::copy(untold_->sizes.begin(), untold_->sizes.end(), sizes.begin());
  }
  Status sent = group_.Broadcast(std::span<double>(sizes));
  if (!sent) return sent;
  sizes_.assign(sizes.begin(), sizes.end());
  if (group_.elastic())
    if (Status shared = ShareMemory(); !shared) return shared;
  if (untold_) Tell();
  return Nothing{};
}

Status InProcessAdvisor::ShareMemory() {
  const std::string own = group_.rank() == 0 ? Encode() : "";
  double length = static_cast<double>(own.size());
  if (Status sent = group_.Broadcast(std::span<double>(&length, 1)); !sent) return sent;
  std::vector<double> numbers(static_cast<std::size_t>(length) / sizeof(double) + 1);
  std::memcpy(numbers.data(), own.data(), own.size());
  if (Status sent = group_.Broadcast(numbers); !sent) return sent;
  memory_.assign(reinterpret_cast<const char*>(numbers.data()), static_cast<std::size_t>(length));
  behind_ = group_.rank() != 0;
  return Nothing{};
}

Answer InProcessAdvisor::Poll() {
  if (sizes_.empty()) return {.ready = true, .batch = std::nullopt};
  return {.ready = true, .batch = sizes_[group_.slot()]};
}

std::string InProcessAdvisor::Save() const { return behind_ ? memory_ : Encode(); }

std::string InProcessAdvisor::Encode() const {
  Memory memory;
  int slots = group_.slots();
  std::vector<int> sizes = sizes_;
  memory(slots, sizes);
  if (visit_decider_) visit_decider_(memory);
  const auto* bytes = reinterpret_cast<const char*>(memory.numbers().data());
  return std::string(kMark).append(bytes, memory.numbers().size() * sizeof(double));
}

// Every rank reads all of it, so that they agree on what is wrong with it.
Status InProcessAdvisor::Restore(const std::string& state) {
  sizes_.clear();
  behind_ = false;
  if (IsOfRemoteAdvisor(state)) return Nothing{};  // what was known there is lost, the job is not
  if (!state.starts_with(kMark))
    throw InputError("the advisor's state in the checkpoint is of another version");
  std::vector<double> numbers((state.size() - kMark.size()) / sizeof(double));
  std::memcpy(numbers.data(), state.data() + kMark.size(), numbers.size() * sizeof(double));
  Memory memory(std::move(numbers));
  int slots = 0;
  memory(slots, sizes_);
  if (slots != group_.slots() || (!sizes_.empty() && std::ssize(sizes_) != slots))
    throw InputError(
        "the advisor's state in the checkpoint is of a job with another number of ranks");
  if (visit_decider_) visit_decider_(memory);
  memory.ExpectEnd();
  return Nothing{};
}

}  // namespace dynamix
