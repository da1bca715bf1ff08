// The service and the worker's side of it, over real sockets on loopback.
#include "dynamix/rpc/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/rpc/admin.h"
#include "dynamix/rpc/rate_limit.h"
#include "dynamix/rpc/remote_advisor.h"
#include "dynamix/rpc/testing/loopback.h"

namespace dynamix {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class ThrowingPolicy : public FixedPolicy {
 public:
  ThrowingPolicy() : FixedPolicy(1) {}
  Decisions Decide(const Round&, const States&, Rng&) override {
    throw std::runtime_error("the policy is broken");
  }
};

// On the port it had, which may be another process's for a moment: the system gives it to outgoing
// connections too.
std::unique_ptr<Service> Restart(const ServiceOptions& options, const PolicySpec& policy) {
  for (int attempt = 0;; ++attempt) {
    auto service = Service::Start(options, policy);
    if (service.ok() || attempt == 1000) return std::move(service).value();
    std::this_thread::sleep_for(milliseconds(10));
  }
}

TEST(ServiceTest, AdvisesAllWorkersOfARound) {
  const auto service = StartService(Options(), Fixed(40));
  std::vector<std::unique_ptr<RemoteAdvisor>> advisors;
  for (int rank = 0; rank < 4; ++rank)
    advisors.push_back(std::make_unique<RemoteAdvisor>(Client(service->port(), rank, 4)));
  for (std::int64_t window = 0; window < 3; ++window) {
    for (auto& advisor : advisors) (void)advisor->Submit(window, Entry(32));
    for (auto& advisor : advisors) EXPECT_EQ(Wait(*advisor).batch, 40);
  }
  EXPECT_EQ(service->counts().rounds, 3);
  EXPECT_EQ(service->counts().workers, 4);
}

TEST(ServiceTest, JobsDoNotTouchEachOther) {
  const auto service = StartService(Options(/*round_deadline_s=*/0.2), Fixed(40));
  RemoteAdvisorOptions first = Client(service->port()), second = Client(service->port(), 0, 2);
  first.job = "first";
  second.job = "second";  // its second worker never comes
  RemoteAdvisor a(first), b(second);
  (void)b.Submit(0, Entry(16));
  EXPECT_EQ(Ask(a, 0, Entry(16)).batch, 40);
  EXPECT_EQ(Wait(b).batch, 16) << "half a job is not decided about";
  EXPECT_EQ(service->counts().jobs, 2);
}

TEST(ServiceTest, ALateWorkerGetsTheAdviceOfItsRound) {
  const auto service = StartService(Options(/*round_deadline_s=*/0.2), Fixed(40));
  RemoteAdvisor fast(Client(service->port(), 0, 2)), slow(Client(service->port(), 1, 2));
  // Nothing is decided before both were heard.
  std::int64_t window = 0;
  do {
    (void)fast.Submit(++window, Entry(32));
    (void)slow.Submit(window, Entry(32));
  } while (Wait(fast).batch != 40 || Wait(slow).batch != 40);
  const std::int64_t late = service->counts().late;
  EXPECT_EQ(Ask(fast, ++window, Entry(40)).batch, 40) << "without the slow one, after the deadline";
  EXPECT_EQ(Ask(slow, window, Entry(32)).batch, 40);
  EXPECT_EQ(service->counts().late, late + 1);
}

TEST(ServiceTest, APolicyIsSwappedWithoutLosingARound) {
  ServiceOptions options = Options();
  options.find_policy = [](const std::string& name) {
    if (name != "other") throw InputError("no policy " + name);
    return Fixed(64);
  };
  const auto service = StartService(options, Fixed(40));
  RemoteAdvisor advisor(Client(service->port()));
  EXPECT_EQ(Ask(advisor, 0, Entry(32)).batch, 40);
  const AdminOptions admin{.address = "127.0.0.1:" + std::to_string(service->port())};
  ASSERT_TRUE(SwapPolicy(admin, "other").ok());
  EXPECT_EQ(Ask(advisor, 1, Entry(40)).batch, 64);
  service->SetPolicy(Fixed(48));
  EXPECT_EQ(Ask(advisor, 2, Entry(64)).batch, 48);
  EXPECT_EQ(service->counts().rounds, 3);
}

// Two files, one readable and one missing, must look the same to a caller.
TEST(ServiceTest, ARefusedPolicyIsAlwaysRefusedWithTheSameWords) {
  ServiceOptions options = Options();
  std::vector<std::string> told;
  std::mutex mutex;
  options.find_policy = [](const std::string& name) -> PolicySpec {
    if (name == "throws") throw std::runtime_error("not an InputError");
    throw InputError(name + " is not a policy file");
  };
  options.log = [&](const LogEvent& event) {
    const std::lock_guard lock(mutex);
    if (event.event == "policy_kept") told.push_back(event.detail);
  };
  const auto service = StartService(options, Fixed(40));
  const AdminOptions admin{.address = "127.0.0.1:" + std::to_string(service->port())};
  const auto refused = [&](const std::string& name) {
    const std::string text = SwapPolicy(admin, name).error();
    return text.substr(text.find(name) + name.size());
  };
  const std::string words = refused("/etc/passwd");
  EXPECT_THAT(words, HasSubstr("not the name of a rule"));
  for (const char* name : {"/no/such/file", "none", "../secret", "throws"})
    EXPECT_EQ(refused(name), words);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(told, testing::Contains("/etc/passwd is not a policy file")) << "in the log alone";
}

TEST(ServiceTest, AnotherRunOfAJobIsRefusedWhileItRuns) {
  const auto service = StartService(Options(), Fixed(40));
  RemoteAdvisorOptions first = Client(service->port(), 0, 2),
                       second = Client(service->port(), 1, 2);
  first.run = 111;
  second.run = 222;
  second.breaker_failures = 1;
  auto a = std::make_unique<RemoteAdvisor>(first);
  (void)a->Submit(0, Entry(32));  // waits for rank 1 of its own run
  while (service->counts().reports == 0) std::this_thread::sleep_for(milliseconds(1));
  RemoteAdvisor other(second);
  EXPECT_FALSE(Ask(other, 0, Entry(32)).batch.has_value());
  second.run = 0;
  RemoteAdvisor resumed(second);
  EXPECT_TRUE(resumed.Restore("111")) << "from a checkpoint of the first run";
  EXPECT_EQ(Ask(resumed, 0, Entry(32)).batch, 40);
  EXPECT_EQ(Wait(*a).batch, 40);
  EXPECT_EQ(a->Save(), "111");
}

TEST(ServiceTest, FallbacksOfASecondRunAreToldToo) {
  std::atomic<int> told = 0;
  ServiceOptions options = Options();
  options.gate = {.lease_s = 0.1, .round_deadline_s = 0.1};
  options.job_options = [](const std::string&, int) {
    ArbitratorOptions own;
    own.guard = {.rounds = 1, .hold = 5};
    return own;
  };
  options.log = [&](const LogEvent& event) { told += event.event == "fallback" ? 1 : 0; };
  {
    const auto service = StartService(options, Fixed(40));
    for (int run = 0; run < 2; ++run) {
      auto advisor = std::make_unique<RemoteAdvisor>(Client(service->port()));
      for (std::int64_t window = 0; window < 6; ++window) {
        RoundEntry entry = Entry(window < 2 ? 32 : 40);
        entry.start_batch = 32;
        entry.report->training.loss = window < 2 ? 1 : 100;
        (void)Ask(*advisor, window, entry);
      }
      advisor.reset();
      while (service->counts().workers > 0) std::this_thread::sleep_for(milliseconds(1));
    }
  }
  EXPECT_EQ(told, 2);
}

TEST(ServiceTest, AFloodOfRefusalsIsNotAFloodOfLines) {
  std::atomic<int> lines = 0;
  ServiceOptions options = Options();
  options.token = "secret";
  options.log = [&](const LogEvent& event) { lines += event.event == "refused" ? 1 : 0; };
  const auto service = StartService(options, Fixed(40));
  const AdminOptions admin{.address = "127.0.0.1:" + std::to_string(service->port())};
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(SwapPolicy(admin, "static"));
  EXPECT_EQ(service->counts().refused, 200) << "all are counted";
  EXPECT_LT(lines, 150);
}

TEST(RateLimitTest, LetsSoManyPassAndCountsTheOthers) {
  RateLimit limit(/*per_second=*/2, /*burst=*/3);
  const auto at = [](double seconds) {
    return RateLimit::Time{} + milliseconds(1000 + static_cast<int>(1000 * seconds));
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Pass(at(0)));
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(limit.Pass(at(0)));
  EXPECT_EQ(limit.TakeHeld(), 4);
  EXPECT_EQ(limit.TakeHeld(), 0);
  EXPECT_TRUE(limit.Pass(at(0.5)));
  EXPECT_FALSE(limit.Pass(at(0.6)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Pass(at(100))) << "never more than the burst";
  EXPECT_FALSE(limit.Pass(at(100)));
}

TEST(ServiceTest, ABrokenPolicyHolds) {
  std::atomic<int> told = 0;
  ServiceOptions options = Options();
  options.log = [&](const LogEvent& event) { told += event.event == "policy_failed" ? 1 : 0; };
  {
    const auto throwing =
        StartService(options, {"broken", {}, [] { return std::make_unique<ThrowingPolicy>(); }});
    RemoteAdvisor advisor(Client(throwing->port()));
    EXPECT_EQ(Ask(advisor, 0, Entry(32)).batch, 32);
  }
  EXPECT_EQ(told, 1);
  const auto nan = StartService(options, Fixed(kMissing));
  RemoteAdvisor advisor(Client(nan->port()));
  EXPECT_EQ(Ask(advisor, 0, Entry(32)).batch, 32);
}

TEST(ServiceTest, ASlowOrFailingRecordCostsNoAdvice) {
  std::atomic<int> lost = 0;
  ServiceOptions options = Options();
  options.on_round = [](const RoundRecord&) {
    std::this_thread::sleep_for(milliseconds(50));
    throw std::runtime_error("disk full");
  };
  options.log = [&](const LogEvent& event) { lost += event.event == "record_lost" ? 1 : 0; };
  {
    const auto service = StartService(options, Fixed(40));
    RemoteAdvisor advisor(Client(service->port()));
    for (std::int64_t window = 0; window < 5; ++window)
      EXPECT_EQ(Ask(advisor, window, Entry(32)).batch, 40);
  }
  EXPECT_EQ(lost, 5);
}

TEST(ServiceTest, ShutsDownWithCallsPending) {
  auto service = StartService(Options(), Fixed(40));
  RemoteAdvisorOptions client = Client(service->port(), 0, 2);
  client.breaker_failures = 1;
  RemoteAdvisor waiting(client);
  (void)waiting.Submit(0, Entry(32));
  while (service->counts().reports == 0) std::this_thread::sleep_for(milliseconds(1));
  service.reset();
  EXPECT_FALSE(Wait(waiting).batch.has_value());
}

TEST(ServiceTest, RefusesWhatItsLimitsForbid) {
  ServiceOptions options = Options();
  options.max_jobs = 1;
  options.token = "secret";
  std::vector<std::string> refused;
  std::mutex mutex;
  options.log = [&](const LogEvent& event) {
    const std::lock_guard lock(mutex);
    if (event.event == "refused") refused.push_back(event.detail);
  };
  const auto service = StartService(options, Fixed(40));
  const auto ask = [&](RemoteAdvisorOptions client) {
    client.breaker_failures = 1;
    RemoteAdvisor advisor(client);
    return Ask(advisor, 0, Entry(32)).batch;
  };
  RemoteAdvisorOptions client = Client(service->port());
  EXPECT_FALSE(ask(client).has_value()) << "no token";
  client.token = "guess";
  EXPECT_FALSE(ask(client).has_value());
  client.token = "secret";
  RemoteAdvisor holder(client);  // stays, so that the job does
  EXPECT_EQ(Ask(holder, 0, Entry(32)).batch, 40);
  client.job = "another";
  EXPECT_FALSE(ask(client).has_value()) << "too many jobs";
  client.job = "job";
  client.size = 2;
  client.rank = 1;
  EXPECT_FALSE(ask(client).has_value()) << "another size";
  const std::lock_guard lock(mutex);
  ASSERT_EQ(refused.size(), 4u);
  EXPECT_THAT(refused[0], HasSubstr("token"));
  EXPECT_THAT(refused[2], HasSubstr("no room"));
  EXPECT_THAT(refused[3], HasSubstr("runs with 1 workers"));
}

TEST(ServiceTest, BadOptionsAreRefusedAtTheDoor) {
  ServiceOptions options = Options();
  options.address = "0.0.0.0:0";
  EXPECT_THROW((void)Service::Start(options, Fixed(40)), InputError);
  options = Options();
  options.tls.key = "only a key";
  EXPECT_THROW((void)Service::Start(options, Fixed(40)), InputError);
  options = Options();
  options.address = "127.0.0.1:1";
  const auto first = StartService(Options(), Fixed(40));
  options.address = "127.0.0.1:" + std::to_string(first->port());
  EXPECT_THAT(Service::Start(options, Fixed(40)).error(), HasSubstr("cannot listen"));
}

TEST(RemoteAdvisorTest, NeverWaitsForAnArbitratorThatIsNotThere) {
  RemoteAdvisorOptions options = Client(1);
  options.breaker_failures = 2;
  RemoteAdvisor advisor(options);
  for (std::int64_t window = 0; window < 5; ++window)
    EXPECT_FALSE(Ask(advisor, window, Entry(32)).batch.has_value());
  EXPECT_TRUE(advisor.counts().breaker_open);
}

TEST(RemoteAdvisorTest, ComesBackWhenTheArbitratorRestarts) {
  ServiceOptions options = Options();
  auto service = StartService(options, Fixed(40));
  options.address = "127.0.0.1:" + std::to_string(service->port());
  RemoteAdvisorOptions client = Client(service->port());
  client.breaker_failures = 2;
  RemoteAdvisor advisor(client);
  EXPECT_EQ(Ask(advisor, 0, Entry(32)).batch, 40);
  service.reset();
  EXPECT_FALSE(Ask(advisor, 1, Entry(40)).batch.has_value());
  options.epoch = 2;
  service = Restart(options, Fixed(64));
  std::int64_t window = 2;
  while (Ask(advisor, window++, Entry(40)).batch != 64) {
    ASSERT_LT(window, 100000);
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(advisor.counts().epoch, 2u);
}

TEST(RemoteAdvisorTest, DoesNotBelieveAStaleArbitrator) {
  ServiceOptions options = Options();
  options.epoch = 7;
  auto fresh = StartService(options, Fixed(40));
  options.epoch = 6;
  const auto stale = StartService(options, Fixed(200));
  RemoteAdvisorOptions client = Client(fresh->port());
  client.addresses += ",127.0.0.1:" + std::to_string(stale->port());
  client.breaker_failures = 2;
  RemoteAdvisor advisor(client);
  EXPECT_EQ(Ask(advisor, 0, Entry(32)).batch, 40);
  fresh.reset();
  for (std::int64_t window = 1; window < 4; ++window)
    EXPECT_FALSE(Ask(advisor, window, Entry(40)).batch.has_value());
  EXPECT_GT(stale->counts().refused, 0) << "it was asked, and knew that it is stale";
}

TEST(RemoteAdvisorTest, BadOptionsAreRefused) {
  RemoteAdvisorOptions options = Client(1);
  options.job = "a/b";
  EXPECT_THROW(RemoteAdvisor{options}, InputError);
  options = Client(1, 3, 3);
  EXPECT_THROW(RemoteAdvisor{options}, InputError);
  options = Client(1);
  for (const char* addresses :
       {"", "here", "here:0", "here:x", "127.0.0.1:1,", "127.0.0.1:1,here"}) {
    options.addresses = addresses;
    EXPECT_THROW(RemoteAdvisor{options}, InputError) << addresses;
  }
}

TEST(StepLimitTest, BoundsAStepAndCalmsSwings) {
  const BatchBounds bounds{.min = 1, .max = 10000};
  StepLimit limit(4);
  EXPECT_EQ(limit.Apply(1 << 20, 100, bounds), 400);
  EXPECT_EQ(limit.Apply(10000, 400, bounds), 1600);
  int batch = 1600, widest = 0;
  for (int i = 0; i < 40; ++i) {
    const int next = limit.Apply(i % 2 == 0 ? 1 : 10000, batch, bounds);
    if (i >= 30) widest = std::max(widest, std::abs(next - batch) * 100 / batch);
    batch = next;
  }
  EXPECT_LE(widest, 6) << "percent";
}

}  // namespace
}  // namespace dynamix
