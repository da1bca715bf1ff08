#include "dynamix/rpc/wire.h"

#include <algorithm>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/rpc/arbitrator.pb.h"

namespace dynamix {
namespace {

// Over the lists of core/report_fields.h: a field that arbitrator.proto lacks does not compile.
#define DYNAMIX_PUT(field, low, high, over) \
  if (!IsMissing(from.field)) to.set_##field(from.field);
// Here, and only here, numbers from outside become numbers that can be.
#define DYNAMIX_GET(field, low, high, over) \
  to.field = from.has_##field() ? Clip(from.field(), low, high) : kMissing;

void Put(const NetworkReport& from, v1::NetworkMeasurement& to) {
  to.set_tier(static_cast<int>(from.tier));
  DYNAMIX_NETWORK_FIELDS(DYNAMIX_PUT)
}
void Put(const HostReport& from, v1::HostMeasurement& to) { DYNAMIX_HOST_FIELDS(DYNAMIX_PUT) }
void Put(const TrainingReport& from, v1::TrainingMeasurement& to) {
  DYNAMIX_TRAINING_FIELDS(DYNAMIX_PUT)
}
void Put(const Report& from, v1::ReportRequest& to) {
  to.set_iterations(from.iterations);
  DYNAMIX_TIME_FIELDS(DYNAMIX_PUT)
  Put(from.network, *to.mutable_network());
  Put(from.host, *to.mutable_host());
  Put(from.training, *to.mutable_training());
}

void Get(const v1::NetworkMeasurement& from, NetworkReport& to) {
  to.tier =
      static_cast<NetworkTier>(std::clamp(from.tier(), 0, static_cast<int>(NetworkTier::kEbpf)));
  DYNAMIX_NETWORK_FIELDS(DYNAMIX_GET)
}
void Get(const v1::HostMeasurement& from, HostReport& to) { DYNAMIX_HOST_FIELDS(DYNAMIX_GET) }
void Get(const v1::TrainingMeasurement& from, TrainingReport& to) {
  DYNAMIX_TRAINING_FIELDS(DYNAMIX_GET)
}
void Get(const v1::ReportRequest& from, Report& to) {
  to.iterations = from.iterations();
  DYNAMIX_TIME_FIELDS(DYNAMIX_GET)
  // No part of an iteration is longer than the iteration: one lie of a day would be remembered by a
  // policy for many rounds.
  for (double* part : {&to.compute_ms, &to.wait_ms, &to.communication_ms})
    if (*part > to.iteration_ms) *part = to.iteration_ms;
  Get(from.network(), to.network);
  Get(from.host(), to.host);
  Get(from.training(), to.training);
}

#undef DYNAMIX_PUT
#undef DYNAMIX_GET

double Optional(bool has, double value) { return has ? value : kMissing; }

void Put(const BatchBounds& from, v1::Bounds& to) {
  to.set_min(from.min);
  to.set_max(from.max);
  to.set_granularity(from.granularity);
  to.set_dead_band(from.dead_band);
}

BatchBounds Get(const v1::Bounds& from) {
  return {from.min(), from.max(), from.granularity(), from.dead_band()};
}

Result<std::optional<int>> AdvisedBatch(bool has, int batch) {
  if (!has) return std::optional<int>();
  if (batch < 1 || batch > kLargestBatch)
    return Error{"advice of " + std::to_string(batch) + " samples"};
  return std::optional<int>(batch);
}

template <typename Message>
std::string Bytes(const Message& message) {
  return message.SerializeAsString();
}

template <typename Message>
auto Parse(std::string_view bytes) -> decltype(Read(std::declval<Message>())) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{"not a message of this protocol"};
  return Read(message);
}

}  // namespace

std::string CheckJobName(std::string_view name) {
  if (name.empty() || name.size() > 128) return "a job's name has 1 to 128 characters";
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '.' && c != '_' && c != '-')
      return "a job's name has only letters, digits, '.', '_' and '-'";
  }
  // It names a folder too.
  return name[0] == '.' ? "a job's name does not start with '.'" : "";
}

void Write(const WorkerName& name, v1::Worker& to) {
  to.set_job(name.job);
  to.set_rank(name.rank);
  to.set_incarnation(name.incarnation);
}

Result<WorkerName> Read(const v1::Worker& from) {
  if (const std::string wrong = CheckJobName(from.job()); !wrong.empty())
    return Error{"worker.job: " + wrong};
  if (from.rank() < 0 || from.rank() >= kMaxWorkers)
    return Error{"worker.rank = " + std::to_string(from.rank()) +
                 " is not allowed: expected a value in [0, 4095]"};
  return WorkerName{from.job(), from.rank(), from.incarnation()};
}

void Write(const JoinMessage& message, v1::JoinRequest& to) {
  Write(message.worker, *to.mutable_worker());
  to.set_size(message.size);
  to.set_feature_hash(message.feature_hash);
  to.set_next_window(message.next_window);
  to.set_highest_epoch(message.highest_epoch);
  to.set_run(message.run);
  const JobSettings& settings = message.settings;
  to.set_learning_rate_rule(static_cast<int>(settings.rule));
  to.set_schedule(static_cast<int>(settings.schedule));
  to.set_clock(static_cast<int>(settings.clock));
  to.set_adaptive(settings.adaptive);
  if (!IsMissing(settings.base_learning_rate))
    to.set_base_learning_rate(settings.base_learning_rate);
  if (!IsMissing(settings.base_batch)) to.set_base_batch(settings.base_batch);
  if (!IsMissing(settings.target_accuracy)) to.set_target_accuracy(settings.target_accuracy);
  if (!IsMissing(settings.target_loss)) to.set_target_loss(settings.target_loss);
}

Result<JoinMessage> Read(const v1::JoinRequest& from) {
  Result<WorkerName> worker = Read(from.worker());
  if (!worker) return Error{worker.error()};
  JoinMessage message;
  message.worker = std::move(worker).value();
  message.size = from.size();
  if (message.size <= message.worker.rank || message.size > kMaxWorkers)
    return Error{"size = " + std::to_string(message.size) + " is not allowed: expected more than " +
                 "the rank, at most " + std::to_string(kMaxWorkers)};
  message.feature_hash = from.feature_hash();
  message.next_window = std::clamp(from.next_window(), std::int64_t{0}, kLargestWindow);
  message.highest_epoch = from.highest_epoch();
  message.run = from.run();
  message.settings.rule = static_cast<LearningRateRule>(
      std::clamp(from.learning_rate_rule(), 0, kLearningRateRuleCount - 1));
  message.settings.schedule =
      static_cast<Schedule>(std::clamp(from.schedule(), 0, kScheduleCount - 1));
  message.settings.clock =
      static_cast<ScheduleClock>(std::clamp(from.clock(), 0, kScheduleClockCount - 1));
  message.settings.adaptive = from.adaptive();
  message.settings.base_learning_rate =
      Optional(from.has_base_learning_rate(), from.base_learning_rate());
  message.settings.base_batch = Optional(from.has_base_batch(), from.base_batch());
  message.settings.target_accuracy = Optional(from.has_target_accuracy(), from.target_accuracy());
  message.settings.target_loss = Optional(from.has_target_loss(), from.target_loss());
  return message;
}

void Write(const OpenMessage& message, v1::OpenRequest& to) {
  Write(message.join, *to.mutable_join());
  Put(message.entry.bounds, *to.mutable_bounds());
  to.set_start_batch(message.entry.start_batch);
  to.set_job_start(message.job_start);
}

Result<OpenMessage> Read(const v1::OpenRequest& from) {
  Result<JoinMessage> join = Read(from.join());
  if (!join) return Error{join.error()};
  OpenMessage message{.join = std::move(join).value(),
                      .entry = {.bounds = Get(from.bounds()),
                                .start_batch = from.start_batch(),
                                .batch = from.start_batch(),
                                .report = {}},
                      .job_start = from.job_start()};
  try {
    message.entry.bounds.Validate("bounds");
    RequireInRange("start_batch", message.entry.start_batch, 1, kLargestBatch);
    if (message.job_start != 0)
      RequireInRange("job_start", message.job_start,
                     static_cast<double>(message.entry.start_batch) + message.join.size - 1,
                     static_cast<double>(kLargestBatch) * message.join.size);
  } catch (const InputError& error) {
    return Error{error.what()};
  }
  return message;
}

void Write(const Opening& message, v1::Opening& to) {
  if (message.batch) to.set_batch(*message.batch);
}

Result<Opening> Read(const v1::Opening& from) {
  const Result<std::optional<int>> batch = AdvisedBatch(from.has_batch(), from.batch());
  if (!batch) return Error{batch.error()};
  return Opening{batch.value()};
}

void Write(const Welcome& message, v1::JoinResponse& to) {
  to.set_epoch(message.epoch);
  to.set_lease_ms(static_cast<std::int64_t>(1e3 * message.lease_s));
  to.set_round_deadline_ms(static_cast<std::int64_t>(1e3 * message.round_deadline_s));
}

Result<Welcome> Read(const v1::JoinResponse& from) {
  // A lease out of range would make the client chatter, or fall silent.
  return Welcome{from.epoch(), 1e-3 * std::clamp<double>(from.lease_ms(), 100, 3.6e6),
                 1e-3 * std::clamp<double>(from.round_deadline_ms(), 0, 3.6e6)};
}

void Write(const ReportMessage& message, v1::ReportRequest& to) {
  DYNAMIX_CHECK(message.entry.report.has_value(), "an entry with its report");
  Write(message.worker, *to.mutable_worker());
  to.set_highest_epoch(message.highest_epoch);
  to.set_window(message.window);
  const RoundEntry& entry = message.entry;
  Put(entry.bounds, *to.mutable_bounds());
  to.set_start_batch(entry.start_batch);
  to.set_batch(entry.batch);
  Put(*entry.report, to);
}

Result<ReportMessage> Read(const v1::ReportRequest& from) {
  Result<WorkerName> worker = Read(from.worker());
  if (!worker) return Error{worker.error()};
  ReportMessage message;
  message.worker = std::move(worker).value();
  message.highest_epoch = from.highest_epoch();
  message.window = from.window();
  RoundEntry& entry = message.entry;
  entry.bounds = Get(from.bounds());
  entry.start_batch = from.start_batch();
  entry.batch = from.batch();
  try {
    RequireInRange("window", message.window, std::int64_t{0}, kLargestWindow);
    entry.bounds.Validate("bounds");
    RequireInRange("start_batch", entry.start_batch, 1, kLargestBatch);
    RequireInRange("batch", entry.batch, 1, kLargestBatch);
    RequireInRange("iterations", from.iterations(), 1, kLargestBatch);
  } catch (const InputError& error) {
    return Error{error.what()};
  }
  Report& report = entry.report.emplace();
  report.rank = message.worker.rank;
  report.window = message.window;
  report.local_batch = entry.batch;
  Get(from, report);
  return message;
}

void Write(const Advice& message, v1::Advice& to) {
  to.set_epoch(message.epoch);
  to.set_window(message.window);
  if (message.batch) to.set_batch(*message.batch);
  to.set_valid_windows(message.valid_windows);
  to.set_fallback(message.fallback);
  to.set_policy(message.policy);
}

Result<Advice> Read(const v1::Advice& from) {
  Advice advice;
  advice.epoch = from.epoch();
  advice.window = from.window();
  const Result<std::optional<int>> batch = AdvisedBatch(from.has_batch(), from.batch());
  if (!batch) return Error{batch.error()};
  advice.batch = batch.value();
  advice.valid_windows = std::clamp(from.valid_windows(), 0, 1000);
  advice.fallback = from.fallback();
  advice.policy = from.policy().substr(0, 256);
  return advice;
}

std::string EncodeReport(const ReportMessage& message) {
  v1::ReportRequest wire;
  Write(message, wire);
  return Bytes(wire);
}

Result<ReportMessage> ParseReport(std::string_view bytes) {
  return Parse<v1::ReportRequest>(bytes);
}

std::string EncodeAdvice(const Advice& advice) {
  v1::Advice wire;
  Write(advice, wire);
  return Bytes(wire);
}

Result<Advice> ParseAdvice(std::string_view bytes) { return Parse<v1::Advice>(bytes); }

}  // namespace dynamix
