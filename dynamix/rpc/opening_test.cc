// Where a job begins, asked over real sockets on loopback (Open of arbitrator.proto).
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "dynamix/rpc/advised_worker.h"
#include "dynamix/rpc/listener.h"
#include "dynamix/rpc/testing/loopback.h"

namespace dynamix {
namespace {

// Begins with so many samples in all.
class OpeningPolicy : public FixedPolicy {
 public:
  explicit OpeningPolicy(double global_batch) : FixedPolicy(1), global_batch_(global_batch) {}
  double OpeningBatch(const Round&) const override { return global_batch_; }

 private:
  double global_batch_;
};

PolicySpec OpensWith(double global_batch) {
  return {"opens", {}, [global_batch] { return std::make_unique<OpeningPolicy>(global_batch); }};
}

RoundEntry Unmeasured(int batch) {
  RoundEntry entry = Entry(batch);
  entry.report.reset();
  return entry;
}

RemoteAdvisorOptions Patient(int port, int rank = 0, int size = 1) {
  RemoteAdvisorOptions options = Client(port, rank, size);
  options.opening_s = kNeverS;
  return options;
}

TEST(OpeningTest, SaysWhereAJobBeginsAndEntersNobody) {
  const auto service = StartService(Options(), OpensWith(64));
  RemoteAdvisor advisor(Patient(service->port(), 1, 4));
  EXPECT_EQ(advisor.Open(Unmeasured(32), 0).value(), 16);
  EXPECT_EQ(advisor.Open(Unmeasured(16), 0).value(), std::nullopt) << "it is there already";
  EXPECT_EQ(advisor.Open(Unmeasured(8), 0).value(), 16);
  EXPECT_EQ(advisor.Open(Unmeasured(200), 0).value(), 50) << "a quarter at most, as of any advice";
  RoundEntry bounded = Unmeasured(32);
  bounded.bounds.min = 20;
  EXPECT_EQ(advisor.Open(bounded, 0).value(), 20);
  EXPECT_EQ(service->counts().jobs, 0);
  EXPECT_EQ(advisor.counts().joined, 0);
  (void)advisor.Submit(0, Entry(16));
  EXPECT_EQ(advisor.Poll().batch, std::nullopt) << "an opening answers no window";
}

TEST(OpeningTest, WorkersThatStartUnequalBeginInProportion) {
  const auto begins = [](double opening, int rank, int start) {
    const auto service = StartService(Options(), OpensWith(opening));
    return RemoteAdvisor(Patient(service->port(), rank, 3)).Open(Unmeasured(start), 170).value();
  };
  EXPECT_EQ(begins(85, 0, 100), 50);
  EXPECT_EQ(begins(85, 1, 60), 30);
  EXPECT_EQ(begins(85, 2, 10), 5);
  EXPECT_EQ(begins(170, 0, 100), std::nullopt);
  EXPECT_EQ(begins(170, 2, 10), std::nullopt);
}

TEST(OpeningTest, WithoutAnAnswerAJobBeginsWhereItStarts) {
  const auto service = StartService(Options(), Fixed(40));
  EXPECT_EQ(RemoteAdvisor(Patient(service->port())).Open(Unmeasured(32), 0).value(), std::nullopt)
      << "the policy has no wish";
  RemoteAdvisorOptions nobody = Patient(1);  // nothing listens there
  EXPECT_EQ(RemoteAdvisor(nobody).Open(Unmeasured(32), 0).value(), std::nullopt);
  nobody.opening_s = 0;
  EXPECT_EQ(RemoteAdvisor(nobody).Open(Unmeasured(32), 0).value(), std::nullopt);
  RemoteAdvisorOptions too_many = Patient(service->port(), 0, 4096);
  EXPECT_EQ(RemoteAdvisor(too_many).Open(Unmeasured(32), 0).value(), std::nullopt);
}

TEST(OpeningTest, TheSecondAddressSaysWhereToBeginWhenTheFirstIsDeadOrSilent) {
  const auto service = StartService(Options(), OpensWith(16));
  const RemoteAdvisorOptions options = Patient(service->port());
  RemoteAdvisorOptions dead = options;
  dead.addresses = "127.0.0.1:1," + options.addresses;
  EXPECT_EQ(RemoteAdvisor(dead).Open(Unmeasured(32), 0).value(), 16);
  const auto hole = Listener::Open({.address = "127.0.0.1:0"});  // takes nobody's call
  RemoteAdvisorOptions silent = options;
  silent.addresses = "127.0.0.1:" + std::to_string(hole.value()->port()) + "," + options.addresses;
  silent.opening_s = 10;  // half of it for each
  EXPECT_EQ(RemoteAdvisor(silent).Open(Unmeasured(32), 0).value(), 16);
}

TEST(OpeningTest, AnAdvisedWorkerBeginsLowerButNeverHigher) {
  const auto service = StartService(Options(), OpensWith(16));
  AdvisedWorkerOptions options{
      .advisor = Patient(service->port()), .bounds = {.min = 4, .max = 256}, .start_batch = 32};
  EXPECT_EQ(AdvisedWorker(options).batch(), 16);
  options.start_batch = 8;
  EXPECT_EQ(AdvisedWorker(options).batch(), 8) << "nobody knows yet what memory holds";
}

}  // namespace
}  // namespace dynamix
