// JobFeed: the points of one job, for readers that come and go.
//
// Points are texts, made once and shared by all readers. At most kMostPoints are kept, and fewer of
// more than 250 workers (kMostValues). Of a longer job every second one of the older half is
// forgotten, so the beginning stays visible.
//
// A job may start anew under its name: the run before it becomes its ghost, to compare with. One that
// goes on from a checkpoint takes back the rounds after it. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/page/page.h"
#include "dynamix/page/points.h"

namespace dynamix {

class JobFeed {
 public:
  static constexpr std::size_t kMostPoints = 4000;
  static constexpr std::size_t kMostValues = 1'000'000;  // points times workers

  struct Event {
    std::int64_t number;  // from 1, in order
    std::int64_t round;
    std::string point;  // JSON
  };

  // `epoch` tells this feed from that of an earlier process.
  JobFeed(std::string job, std::int64_t epoch, FindModelFunction find_model);

  void SetConfig(const RunConfig& config);
  void SetGhost(const std::vector<RecordedRound>& rounds);
  // A round that names a policy (an arbitrator's do) also says which one is in force from then on.
  void Add(RecordedRound round);

  // Waits up to `patience_s` for points after number `after`; empty when there are none.
  std::vector<Event> After(std::int64_t after, double patience_s) const;
  // Another one, when what a reader has is of another process or of rounds that were taken back.
  std::string Epoch() const;
  nlohmann::json Config() const;  // for run_view.js, with the epoch
  int configs() const;            // how often the configuration was set
  nlohmann::json Ghost() const;   // points; empty: none
  std::string Points() const;     // those that are kept, as a JSON array
  nlohmann::json Row() const;     // of the list of jobs

 private:
  void Forget();
  void TakeBack(std::int64_t round);

  const std::string job_;
  const std::int64_t epoch_;
  const FindModelFunction find_model_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  RunConfig config_;
  std::optional<PolicyModel> model_;
  std::optional<Reasons> reasons_;  // of model_
  std::optional<RecordedRound> previous_;
  std::vector<Event> events_;
  std::int64_t last_ = 0;
  int configs_ = 0, runs_ = 0;
  nlohmann::json ghost_ = nlohmann::json::array();
  nlohmann::json row_;
};

}  // namespace dynamix
