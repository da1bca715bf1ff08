#include "dynamix/dashboard/dashboard.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dynamix/core/input_error.h"
#include "dynamix/dashboard/folder_watch.h"
#include "dynamix/dashboard/job_feed.h"

namespace dynamix {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json Line(int round, int workers = 2) {
  json line = {{"round", round},
               {"seconds", 1.5 * (round + 1)},
               {"window_seconds", 1.5},
               {"accuracy", 0.5},
               {"loss", nullptr},
               {"batches", std::vector<int>(workers, 32)},
               {"sizes", std::vector<int>(workers, 48)},
               {"reports", json::array()}};
  for (int w = 0; w < workers; ++w)
    line["reports"].push_back({{"rank", w},
                               {"iterations", 10},
                               {"local_batch", 32},
                               {"compute_ms", 12.25},
                               {"wait_ms", 1},
                               {"communication_ms", 2}});
  return line;
}

class Connection {
 public:
  Connection(int port, const std::string& path,
             const std::string& headers = "Host: localhost\r\n") {
    file_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request =
        "GET " + path + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n";
    EXPECT_EQ(send(file_, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  }
  ~Connection() { close(file_); }

  // Reads until `text` came, or to the end.
  std::string Until(const std::string& text) {
    std::string buffer(1 << 16, '\0');
    while (text.empty() || all_.find(text) == std::string::npos) {
      const ssize_t size = recv(file_, buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      all_.append(buffer, 0, static_cast<std::size_t>(size));
    }
    return all_;
  }
  std::string All() { return Until(""); }

 private:
  int file_;
  std::string all_;
};

std::unique_ptr<Dashboard> Start() {
  return std::move(Dashboard::Start({.address = "127.0.0.1:0"})).value();
}

TEST(DashboardTest, ServesItsPageAndAllowsNothingFromOutside) {
  const auto dashboard = Start();
  EXPECT_THAT(Connection(dashboard->port(), "/").All(),
              AllOf(HasSubstr("200 OK"), HasSubstr("<title>DYNAMIX jobs"),
                    HasSubstr("default-src 'none'; script-src 'self'"),
                    HasSubstr("frame-ancestors 'none'")));
  EXPECT_THAT(Connection(dashboard->port(), "/dashboard.js").All(), HasSubstr("class Chart"));
  EXPECT_THAT(Connection(dashboard->port(), "/nothing").All(), HasSubstr("404"));
  EXPECT_THAT(Connection(dashboard->port(), "/favicon.ico").All(), testing::EndsWith("\r\n\r\n"));
}

TEST(DashboardTest, ASwappedPolicyIsTold) {
  const auto dashboard = Start();
  json line = Line(0);
  line["policy"] = "balanced";
  dashboard->AddRound("job", line);
  Connection reader(dashboard->port(), "/events?job=job");
  EXPECT_THAT(reader.Until("-1\nevent: point"), HasSubstr("\"policy\":\"balanced\""));
  line = Line(1);
  line["policy"] = "goodput";
  dashboard->AddRound("job", line);
  EXPECT_THAT(reader.Until("-2\nevent: point"), HasSubstr("\"policy\":\"goodput\""));
}

TEST(DashboardTest, ARequestInAnotherHostsNameIsRefused) {
  const auto dashboard = Start();
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"})
    EXPECT_THAT(Connection(dashboard->port(), "/jobs", std::string("Host: ") + host + "\r\n").All(),
                HasSubstr("403"));
  EXPECT_THAT(Connection(dashboard->port(), "/jobs", "Host: 127.0.0.1:7041\r\n").All(),
              HasSubstr("200 OK"));
}

TEST(DashboardTest, BeyondLoopbackOnlyWithTlsAndToken) {
  EXPECT_THAT([] { (void)Dashboard::Start({.address = "0.0.0.0:0"}); },
              testing::ThrowsMessage<InputError>(HasSubstr("TLS and a token")));
}

TEST(DashboardTest, ATokenIsShownOnceAndBecomesACookie) {
  const auto dashboard =
      std::move(Dashboard::Start({.address = "127.0.0.1:0", .token = "secret"})).value();
  const int port = dashboard->port();
  EXPECT_THAT(Connection(port, "/jobs").All(), HasSubstr("401"));
  EXPECT_THAT(Connection(port, "/?token=guess").All(), HasSubstr("401"));
  const std::string answer = Connection(port, "/?token=secret").All();
  EXPECT_THAT(answer, AllOf(HasSubstr("303"), HasSubstr("HttpOnly; SameSite=Strict")));
  const std::size_t begin = answer.find("Set-Cookie: ") + 12;
  const std::string cookie = answer.substr(begin, answer.find(';', begin) - begin);
  EXPECT_THAT(cookie, testing::Not(HasSubstr("secret")));
  EXPECT_THAT(Connection(port, "/jobs", "Host: localhost\r\nCookie: a=b; " + cookie + "\r\n").All(),
              HasSubstr("200 OK"));
}

TEST(DashboardTest, EventsAreTheRecordsPointsAndGoOnWhereAReaderWas) {
  const auto dashboard = Start();
  for (int round = 0; round < 3; ++round) dashboard->AddRound("job", Line(round));
  dashboard->AddRound("job", {{"not", "a round"}});
  EXPECT_THAT(Connection(dashboard->port(), "/jobs").All(),
              AllOf(HasSubstr("\"job\":\"job\""), HasSubstr("\"rounds\":3"),
                    HasSubstr("\"global_batch\":64")));
  Connection first(dashboard->port(), "/events?job=job");
  EXPECT_THAT(first.Until("-3\nevent: point"),
              AllOf(HasSubstr("event: config"), HasSubstr("-1\nevent: point"),
                    HasSubstr("\"compute\":[12.25,12.25]"), HasSubstr("\"sizes\":[48,48]")));
  dashboard->AddRound("job", Line(3));
  const std::string all = first.Until("\"t\":6.0");
  const std::size_t end = all.find("-3\nevent: point"), begin = all.rfind("id: ", end) + 4;
  const std::string epoch = all.substr(begin, end - begin);
  const std::string again = Connection(dashboard->port(), "/events?job=job",
                                       "Host: localhost\r\nLast-Event-ID: " + epoch + "-3\r\n")
                                .Until("-4\nevent: point");
  EXPECT_THAT(again, testing::Not(HasSubstr("-3\nevent")));
  // An event of another process.
  EXPECT_THAT(Connection(dashboard->port(), "/events?job=job",
                         "Host: localhost\r\nLast-Event-ID: 7-0-3\r\n")
                  .Until("-4\nevent: point"),
              HasSubstr("-1\nevent"));
  EXPECT_THAT(Connection(dashboard->port(), "/events?job=other").All(), HasSubstr("404"));
  // All of them at once, to be compared with.
  EXPECT_THAT(Connection(dashboard->port(), "/points?job=job").All(),
              AllOf(HasSubstr("[{"), HasSubstr("\"t\":6.0"), HasSubstr("}]")));
  EXPECT_THAT(Connection(dashboard->port(), "/points").All(), HasSubstr("404"));
}

// Readers that never read fill their sockets; rounds go in all the same, and others read them.
TEST(DashboardTest, AReaderThatDoesNotReadDelaysNobody) {
  const auto dashboard = Start();
  dashboard->AddRound("job", Line(0, 256));
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 10; ++i)
    silent.push_back(std::make_unique<Connection>(dashboard->port(), "/events?job=job"));
  for (int round = 1; round < 1000; ++round) dashboard->AddRound("job", Line(round, 256));
  EXPECT_THAT(Connection(dashboard->port(), "/events?job=job").Until("-1000\nevent: point"),
              HasSubstr("-1000\nevent"));
}

TEST(JobFeedTest, KeepsABoundedNumberOfPointsAndTheBeginning) {
  JobFeed feed("job", 1, {});
  for (int round = 0; round < 10000; ++round) feed.Add(ParseRound(Line(round)));
  const auto events = feed.After(0, 0);
  EXPECT_LE(events.size(), JobFeed::kMostPoints);
  EXPECT_EQ(events.front().number, 1);
  EXPECT_EQ(events.back().number, 10000);
  JobFeed wide("wide", 1, {});
  RecordedRound round = ParseRound(Line(0, 4096));
  for (round.index = 0; round.index < 250; ++round.index) wide.Add(round);
  EXPECT_LE(wide.After(0, 0).size(), JobFeed::kMostValues / 4096);
}

TEST(JobFeedTest, OfAJobThatStartsAnewTheRunBeforeItIsTheGhost) {
  JobFeed feed("job", 1, {});
  for (int round = 0; round < 5; ++round) feed.Add(ParseRound(Line(round)));
  const json epoch = feed.Config()["epoch"];
  feed.Add(ParseRound(Line(3)));  // from a checkpoint: rounds 3 and 4 are taken back
  EXPECT_EQ(feed.After(0, 0).size(), 4u);
  EXPECT_TRUE(feed.Ghost().empty());
  EXPECT_NE(feed.Config()["epoch"], epoch) << "readers must begin anew";
  feed.Add(ParseRound(Line(0)));
  EXPECT_EQ(feed.After(0, 0).size(), 1u);
  EXPECT_EQ(feed.Ghost().size(), 4u);
  EXPECT_EQ(feed.Ghost()[1]["t"], 3.0);
}

TEST(FolderWatchTest, ShowsRunsWhileTheyAreWritten) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("dashboard_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "static-1");
  std::ofstream rounds(folder / "static-1" / "rounds.jsonl");
  rounds << Line(0).dump() << "\n" << Line(1).dump().substr(0, 20) << std::flush;
  {
    const auto dashboard = Start();
    const FolderWatch watch(*dashboard, folder);
    const auto jobs = [&] { return Connection(dashboard->port(), "/jobs").All(); };
    while (jobs().find("\"rounds\":1") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    rounds << Line(1).dump().substr(20) << "\n" << std::flush;
    while (jobs().find("\"rounds\":2") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_THAT(jobs(), HasSubstr("static-1"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dynamix
