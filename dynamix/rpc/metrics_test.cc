#include "dynamix/rpc/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Page(const Metrics& metrics) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(metrics.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  EXPECT_EQ(send(file, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string page(1 << 16, '\0');
  std::string all;
  for (ssize_t size; (size = recv(file, page.data(), page.size(), 0)) > 0;)
    all.append(page, 0, static_cast<std::size_t>(size));
  close(file);
  return all;
}

std::string Rounds(const std::string& job) { return "dynamix_rounds_total{job=\"" + job + "\"} "; }

RoundRecord Record(const std::string& job, int fallbacks = 0) {
  RoundRecord record;
  record.job = job;
  record.fallbacks = fallbacks;
  record.decision.sizes = {16, 16};
  return record;
}

TEST(MetricsTest, TheJobNotHeardForLongestGivesWay) {
  const auto metrics = std::move(Metrics::Start("127.0.0.1:0")).value();
  metrics->Add(Record("active"));
  metrics->Add(Record("silent"));
  for (int job = 0; job < 201; ++job) {
    metrics->Add(Record("job-" + std::to_string(job)));
    metrics->Add(Record("active"));
  }
  const std::string page = Page(*metrics);
  EXPECT_THAT(page, HasSubstr(Rounds("active") + "202\n"));
  EXPECT_THAT(page, HasSubstr(Rounds("job-200") + "1\n"));
  EXPECT_THAT(page, Not(HasSubstr(Rounds("silent"))));
  EXPECT_THAT(page, Not(HasSubstr("dynamix_local_batch{job=\"silent\"")));
}

TEST(MetricsTest, FallbacksOfASecondRunAreAddedToThoseOfTheFirst) {
  const auto metrics = std::move(Metrics::Start("127.0.0.1:0")).value();
  for (const int fallbacks : {1, 2, 0, 1}) metrics->Add(Record("job", fallbacks));
  EXPECT_THAT(Page(*metrics), HasSubstr("dynamix_fallbacks_total{job=\"job\"} 3\n"));
}

TEST(MetricsTest, WhatWorkersReportHasSeriesInBaseUnitsAndWhatTheyDoNotHasNone) {
  const auto metrics = std::move(Metrics::Start("127.0.0.1:0")).value();
  RoundRecord record = Record("job");
  record.decision.policy = "goodput";
  Report report{.iterations = 10, .local_batch = 16, .iteration_ms = 20, .compute_ms = 12};
  report.network.smoothed_rtt_us = 500;
  record.round.entries = {RoundEntry{.batch = 16, .report = report}, RoundEntry{.batch = 16}};
  metrics->Add(record);
  record.decision.policy = "default";
  metrics->Add(record);
  const std::string page = Page(*metrics);
  EXPECT_THAT(page, HasSubstr("dynamix_compute_seconds{job=\"job\",rank=\"0\"} 0.012\n"));
  EXPECT_THAT(page, HasSubstr("dynamix_rtt_seconds{job=\"job\",rank=\"0\"} 0.0005\n"));
  EXPECT_THAT(page, HasSubstr("dynamix_samples_total{job=\"job\"} 640\n"));
  EXPECT_THAT(page, HasSubstr("dynamix_iteration_seconds_count{job=\"job\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("dynamix_policy_info{job=\"job\",policy=\"default\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("policy=\"goodput\"")));
  EXPECT_THAT(page, Not(HasSubstr("dynamix_cpu_use_ratio{")));
  EXPECT_THAT(page, Not(HasSubstr("dynamix_compute_seconds{job=\"job\",rank=\"1\"}")));
}

TEST(MetricsTest, BeyondLoopbackOnlyWithCertificates) {
  EXPECT_THAT([] { (void)Metrics::Start("0.0.0.0:0"); },
              testing::ThrowsMessage<InputError>(HasSubstr("loopback")));
}

}  // namespace
}  // namespace dynamix
