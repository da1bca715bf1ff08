// What travels between a worker and the arbitrator, as plain values; arbitrator.proto is the wire.
//
// Reading checks everything that is not a measurement (names, ranks, bounds, batches) and refuses
// with a sentence; measurements are clipped to what can be (core/report_fields.h), and what is not
// finite is missing. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dynamix/core/result.h"
#include "dynamix/core/round.h"

namespace dynamix {

// One worker process of a job.
struct WorkerName {
  std::string job;                // 1 to 128 characters of [A-Za-z0-9._-]
  int rank = 0;                   // [0, kMaxWorkers)
  std::uint64_t incarnation = 0;  // a restarted worker has a greater one
};

struct JoinMessage {
  WorkerName worker;
  int size = 1;  // (rank, kMaxWorkers]
  std::uint64_t feature_hash = 0;
  std::int64_t next_window = 0;     // >= 0
  std::uint64_t highest_epoch = 0;  // heard so far; 0: none
  std::uint64_t run = 0;  // one training, the same on all its ranks and after a resume; 0: unknown
  JobSettings settings;
};

// A job before its first iteration, as one of its workers sees it.
struct OpenMessage {
  JoinMessage join;
  RoundEntry entry;      // without a report
  double job_start = 0;  // start batches of all workers in sum; 0: all start as this one does
};

// The batch to begin with; empty: the start.
struct Opening {
  std::optional<int> batch;
};

struct Welcome {
  std::uint64_t epoch = 0;
  double lease_s = 0, round_deadline_s = 0;
};

struct ReportMessage {
  WorkerName worker;
  std::uint64_t highest_epoch = 0;
  std::int64_t window = 0;
  RoundEntry entry;  // with its report
};

struct Advice {
  std::uint64_t epoch = 0;
  std::int64_t window = 0;
  std::optional<int> batch;  // empty: keep the batch
  int valid_windows = 0;
  bool fallback = false;  // the guard's, not the policy's
  std::string policy;
};

// Empty when `name` can be a job's name, else what is wrong with it.
std::string CheckJobName(std::string_view name);

// Whole messages as bytes. Parsing believes nothing: anything malformed is an Error.
std::string EncodeReport(const ReportMessage& message);
Result<ReportMessage> ParseReport(std::string_view bytes);
std::string EncodeAdvice(const Advice& advice);
Result<Advice> ParseAdvice(std::string_view bytes);

}  // namespace dynamix
