#include "dynamix/rpc/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/rng.h"
#include "dynamix/core/testing/filled_report.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/arbitrator.pb.h"
#include "dynamix/rpc/security.h"
#include "dynamix/rpc/service.h"
#include "dynamix/rpc/wire.h"

namespace dynamix {
namespace {

using testing::HasSubstr;

ReportMessage Message() {
  ReportMessage message;
  message.worker = {"vision-7", 3, 99};
  message.highest_epoch = 12;
  message.window = 5;
  message.entry.bounds = {.min = 4, .max = 64, .granularity = 4, .dead_band = 0.1};
  message.entry.start_batch = 16;
  message.entry.batch = 32;
  Report& report = message.entry.report.emplace();
  report.iterations = 20;
  report.iteration_ms = 12.5;
  report.network.tier = NetworkTier::kEbpf;
  report.network.delivery_mbps = 930;
  report.host.cpu_use = 0.5;
  report.training.loss = 1.25;
  return message;
}

// protobuf writes to stderr otherwise, which blocks the service when nobody reads its log.
TEST(MessagesTest, BytesThatAreNoTextAreRefusedAndSayNothingOnStderr) {
  static std::string told;
  std::string bytes = EncodeReport(Message());
  bytes.replace(bytes.find("vision-7"), 8, "visio\xff\xfe\x80");
  SendTransportLogTo([](const std::string& text) { told += text; });
  testing::internal::CaptureStderr();
  EXPECT_FALSE(ParseReport(bytes).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(told, HasSubstr("invalid UTF-8"));
  SendTransportLogTo(nullptr);
  EXPECT_FALSE(ParseReport(bytes).ok()) << "and nowhere is a place too";
}

TEST(MessagesTest, AReportArrivesAsItWasSent) {
  const Result<ReportMessage> back = ParseReport(EncodeReport(Message()));
  ASSERT_TRUE(back.ok()) << back.error();
  const ReportMessage& message = back.value();
  EXPECT_EQ(message.worker.job, "vision-7");
  EXPECT_EQ(message.worker.rank, 3);
  EXPECT_EQ(message.worker.incarnation, 99u);
  EXPECT_EQ(message.highest_epoch, 12u);
  EXPECT_EQ(message.entry.bounds.granularity, 4);
  EXPECT_EQ(message.entry.batch, 32);
  const Report& report = *message.entry.report;
  EXPECT_EQ(report.window, 5);
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.iteration_ms, 12.5);
  EXPECT_TRUE(IsMissing(report.compute_ms)) << "what was not measured is missing, not 0";
  EXPECT_EQ(report.network.tier, NetworkTier::kEbpf);
  EXPECT_EQ(report.network.delivery_mbps, 930);
  EXPECT_EQ(report.host.cpu_use, 0.5);
  EXPECT_EQ(report.training.loss, 1.25);
}

TEST(MessagesTest, SettingsArriveAsTheyWereSent) {
  JoinMessage message{.worker = {"text-1", 0, 7}, .size = 2};
  message.settings = {.rule = LearningRateRule::kSqrt,
                      .schedule = Schedule::kWarmup,
                      .clock = ScheduleClock::kSteps,
                      .adaptive = true,
                      .base_learning_rate = 0.003,
                      .base_batch = 64,
                      .target_loss = 1.9};
  v1::JoinRequest wire;
  Write(message, wire);
  const Result<JoinMessage> back = Read(wire);
  ASSERT_TRUE(back.ok()) << back.error();
  const JobSettings& settings = back.value().settings;
  EXPECT_EQ(settings.rule, LearningRateRule::kSqrt);
  EXPECT_EQ(settings.schedule, Schedule::kWarmup);
  EXPECT_EQ(settings.clock, ScheduleClock::kSteps);
  EXPECT_TRUE(settings.adaptive);
  EXPECT_EQ(settings.base_learning_rate, 0.003);
  EXPECT_EQ(settings.base_batch, 64);
  EXPECT_TRUE(IsMissing(settings.target_accuracy)) << "what was not named is missing, not 0";
  EXPECT_EQ(settings.target_loss, 1.9);
}

TEST(MessagesTest, RefusesWhatCannotBe) {
  const auto error = [](auto change) {
    ReportMessage message = Message();
    change(message);
    const Result<ReportMessage> back = ParseReport(EncodeReport(message));
    return back.ok() ? std::string() : back.error();
  };
  EXPECT_THAT(error([](ReportMessage& m) { m.worker.job = "../../etc"; }), HasSubstr("worker.job"));
  EXPECT_THAT(error([](ReportMessage& m) { m.worker.job = ""; }), HasSubstr("worker.job"));
  EXPECT_THAT(error([](ReportMessage& m) { m.worker.rank = -1; }), HasSubstr("worker.rank = -1"));
  EXPECT_THAT(error([](ReportMessage& m) { m.window = -4; }), HasSubstr("window = -4"));
  EXPECT_THAT(error([](ReportMessage& m) { m.entry.batch = 0; }), HasSubstr("batch = 0"));
  EXPECT_THAT(error([](ReportMessage& m) { m.entry.bounds.max = 1 << 30; }),
              HasSubstr("bounds.max"));
  EXPECT_THAT(error([](ReportMessage& m) { m.entry.bounds.dead_band = kMissing; }),
              HasSubstr("dead_band"));
  EXPECT_THAT(error([](ReportMessage& m) { m.entry.report->iterations = 0; }),
              HasSubstr("iterations = 0"));
}

TEST(MessagesTest, EveryFieldOfAReportArrives) {
  ReportMessage message;
  message.entry = FilledEntry();
  message.worker = {"job", message.entry.report->rank, 1};
  message.window = message.entry.report->window;
  message.entry.report->iteration_ms = kDayMs;  // no part is longer
  const Result<ReportMessage> back = ParseReport(EncodeReport(message));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(FieldsOf(back.value().entry), FieldsOf(message.entry));
}

TEST(MessagesTest, TheProtocolHasNoMeasurementThatAReportLacks) {
  const auto& request = *v1::ReportRequest::descriptor();
  int sections = 0;
  for (const char* name : {"network", "host", "training"})
    sections += request.FindFieldByName(name)->message_type()->field_count();
  int listed = 0;
  const Report report;
  VisitMeasurements(report,
                    [&](const ReportField& field, const auto&) { listed += *field.section != 0; });
  EXPECT_EQ(sections, listed);
}

TEST(MessagesTest, HostileMeasurementsAreClippedAndNotAnError) {
  ReportMessage message = Message();
  message.entry.report->compute_ms = -1e308;
  message.entry.report->communication_ms = 1e300;
  message.entry.report->host.cpu_use = 7;
  const Result<ReportMessage> back = ParseReport(EncodeReport(message));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back.value().entry.report->compute_ms, 0);
  EXPECT_EQ(back.value().entry.report->communication_ms, message.entry.report->iteration_ms)
      << "no part of an iteration is longer than the iteration";
  EXPECT_EQ(back.value().entry.report->host.cpu_use, 1);
  message.entry.report->iteration_ms = 1e300;
  EXPECT_EQ(ParseReport(EncodeReport(message)).value().entry.report->iteration_ms, kDayMs);
}

TEST(MessagesTest, WhatIsNotFiniteIsMissing) {
  v1::ReportRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeReport(Message())));
  request.set_compute_ms(kMissing);
  request.mutable_training()->set_loss(std::numeric_limits<double>::infinity());
  const Result<ReportMessage> back = ParseReport(request.SerializeAsString());
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_TRUE(std::isnan(back.value().entry.report->compute_ms));
  EXPECT_TRUE(std::isnan(back.value().entry.report->training.loss));
}

TEST(MessagesTest, AdviceOutOfRangeIsRefused) {
  Advice advice{.epoch = 3, .window = 9, .batch = 48, .valid_windows = 2, .policy = "goodput"};
  const Result<Advice> back = ParseAdvice(EncodeAdvice(advice));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().batch, 48);
  EXPECT_EQ(back.value().policy, "goodput");
  for (const int batch : {0, -1, 1 << 30}) {
    advice.batch = batch;
    EXPECT_FALSE(ParseAdvice(EncodeAdvice(advice)).ok()) << batch;
  }
  advice.batch.reset();
  EXPECT_FALSE(ParseAdvice(EncodeAdvice(advice)).value().batch.has_value());
}

TEST(MessagesTest, AnyBytesAreParsedOrRefused) {
  Rng rng(5);
  const std::string good = EncodeReport(Message());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (std::uint64_t flips = 1 + rng.Below(8); flips > 0; --flips)
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    bytes.resize(rng.Below(bytes.size() + 1));
    const Result<ReportMessage> back = ParseReport(bytes);
    if (!back.ok()) continue;
    EXPECT_GE(back.value().entry.batch, 1);
    EXPECT_LE(back.value().entry.bounds.lowest(), back.value().entry.bounds.highest());
    VisitFields(*back.value().entry.report, [](const ReportField& field, const auto& value) {
      const double number = static_cast<double>(value);
      EXPECT_FALSE(number < field.low || number > field.high) << field.name << " = " << number;
    });
  }
}

TEST(AddressTest, HasAHostAndAPortThatExists) {
  const auto parse = [](const char* text) {
    const std::optional<HostPort> parsed = ParseHostPort(text);
    return parsed ? parsed->host + "|" + std::to_string(parsed->port) : "none";
  };
  EXPECT_EQ(parse("127.0.0.1:0"), "127.0.0.1|0");
  EXPECT_EQ(parse("node-1:65535"), "node-1|65535");
  EXPECT_EQ(parse("[::1]:7040"), "::1|7040");
  for (const char* wrong :
       {"", "host", "host:", ":7040", "[]:1", "host:65536", "host:70000", "host:-1", "host:+1",
        "host: 1", "host:1 ", "host:0x50", "host:http", "host:99999999999999999999"})
    EXPECT_EQ(parse(wrong), "none") << wrong;
}

TEST(AddressTest, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const char* inside :
       {"127.0.0.1:0", "127.8.8.8:1", "localhost:7040", "[::1]:7040", "unix:/run/dynamix"})
    EXPECT_TRUE(IsLoopback(inside)) << inside;
  for (const char* outside : {"0.0.0.0:7040", "10.0.0.1:7040", "[::]:7040", "host:7040",
                              "127.evil.example.org:7040", "127.0.0.1.example.org:1", ":7040"})
    EXPECT_FALSE(IsLoopback(outside)) << outside;
}

TEST(SecurityTest, ACertificateSpeaksForItsOwnJobOnly) {
  const std::vector<std::string> names = {"host.example", "dynamix://job/a/rank/2"};
  EXPECT_TRUE(MaySpeakAs(names, {"a", 2, 0}));
  EXPECT_FALSE(MaySpeakAs(names, {"a", 3, 0}));
  EXPECT_FALSE(MaySpeakAs(names, {"b", 2, 0}));
  EXPECT_TRUE(MaySpeakAs({"dynamix://job/a/rank/*"}, {"a", 3, 0}));
  EXPECT_FALSE(MaySpeakAs({}, {"a", 3, 0}));
  EXPECT_FALSE(MayAdminister(names));
  EXPECT_TRUE(MayAdminister({"dynamix://admin"}));
}

TEST(SecurityTest, TokensAreComparedWhole) {
  EXPECT_TRUE(SameToken("secret", "secret"));
  for (const char* wrong : {"", "s", "secre", "secrets", "secretsecret", "Secret"})
    EXPECT_FALSE(SameToken(wrong, "secret")) << wrong;
}

}  // namespace
}  // namespace dynamix
