#include "dynamix/dashboard/job_feed.h"

#include <algorithm>
#include <chrono>

namespace dynamix {

using nlohmann::json;

JobFeed::JobFeed(std::string job, std::int64_t epoch, FindModelFunction find_model)
    : job_(std::move(job)), epoch_(epoch), find_model_(std::move(find_model)) {
  config_.policy = "-";
  reasons_.emplace(config_.policy, nullptr);
  row_ = {{"job", job_},  {"policy", config_.policy}, {"workers", 0},        {"rounds", 0},
          {"seconds", 0}, {"global_batch", nullptr},  {"accuracy", nullptr}, {"late", 0}};
}

void JobFeed::SetConfig(const RunConfig& config) {
  std::optional<PolicyModel> model = find_model_ ? find_model_(config.policy) : std::nullopt;
  const std::lock_guard lock(mutex_);
  config_ = config;
  reasons_.reset();
  model_ = std::move(model);
  reasons_.emplace(config.policy, model_ ? &*model_ : nullptr);
  row_["policy"] = config.policy;
  row_["workers"] = config.job.workers;
  ++configs_;
}

namespace {

// What a ghost shows of a point.
json GhostPoint(const json& point) {
  return {{"t", point["t"]},
          {"samples", point["samples"]},
          {"accuracy", point["accuracy"]},
          {"loss", point["loss"]},
          {"batches", point["batches"]}};
}

}  // namespace

void JobFeed::SetGhost(const std::vector<RecordedRound>& rounds) {
  Reasons none("", nullptr);
  json points = json::array();
  for (const RecordedRound& round : rounds)
    points.push_back(GhostPoint(PointJson(round, nullptr, none)));
  const std::lock_guard lock(mutex_);
  ghost_ = std::move(points);
}

void JobFeed::Add(RecordedRound round) {
  RunConfig config = [this] {
    const std::lock_guard lock(mutex_);
    return config_;
  }();
  if (!round.policy.empty() && round.policy != config.policy) {
    config.policy = round.policy;
    SetConfig(config);
  }
  const std::lock_guard lock(mutex_);
  if (previous_ && round.index <= previous_->index) TakeBack(round.index);
  const json point = PointJson(round, previous_ ? &*previous_ : nullptr, *reasons_);
  row_["workers"] = round.batches.size();
  row_["rounds"] = round.index + 1;
  row_["seconds"] = point["t"];
  row_["global_batch"] = round.GlobalBatch();
  if (!point["accuracy"].is_null()) row_["accuracy"] = point["accuracy"];
  row_["late"] = point["late"];
  events_.push_back({++last_, round.index, point.dump()});
  const std::size_t workers = std::max<std::size_t>(1, round.batches.size());
  previous_ = std::move(round);
  if (events_.size() > std::min(kMostPoints, kMostValues / workers)) Forget();
  changed_.notify_all();
}

void JobFeed::TakeBack(std::int64_t round) {
  if (round == 0) {
    ghost_ = json::array();
    for (const Event& event : events_) ghost_.push_back(GhostPoint(json::parse(event.point)));
  }
  std::erase_if(events_, [round](const Event& event) { return event.round >= round; });
  previous_.reset();
  ++runs_;
}

void JobFeed::Forget() {
  std::vector<Event> kept;
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (i >= events_.size() / 2 || i % 2 == 0) kept.push_back(std::move(events_[i]));
  events_ = std::move(kept);
}

std::vector<JobFeed::Event> JobFeed::After(std::int64_t after, double patience_s) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(patience_s), [&] { return last_ > after; });
  const auto first = std::find_if(events_.begin(), events_.end(),
                                  [after](const Event& event) { return event.number > after; });
  return {first, events_.end()};
}

std::string JobFeed::Epoch() const {
  const std::lock_guard lock(mutex_);
  return std::to_string(epoch_) + "-" + std::to_string(runs_);
}

json JobFeed::Config() const {
  const std::string epoch = Epoch();
  const std::lock_guard lock(mutex_);
  json config = ViewConfigJson(config_, *reasons_);
  config["epoch"] = epoch;
  return config;
}

int JobFeed::configs() const {
  const std::lock_guard lock(mutex_);
  return configs_;
}

json JobFeed::Ghost() const {
  const std::lock_guard lock(mutex_);
  return ghost_;
}

std::string JobFeed::Points() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Event& event : events_) text += (text.empty() ? "" : ",") + event.point;
  return "[" + text + "]";
}

json JobFeed::Row() const {
  const std::lock_guard lock(mutex_);
  return row_;
}

}  // namespace dynamix
