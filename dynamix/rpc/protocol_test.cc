// The protocol as hostile, broken and unlucky peers speak it: raw calls, no client library.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "dynamix/core/features.h"
#include "dynamix/rpc/arbitrator.grpc.pb.h"
#include "dynamix/rpc/remote_advisor.h"
#include "dynamix/rpc/service.h"

namespace dynamix {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

// Adds one sample to every batch.
class GrowingPolicy : public Policy {
 public:
  std::string_view name() const override { return "growing"; }
  Decisions Decide(const Round& round, const States&, Rng&) override {
    Sizes sizes;
    for (const RoundEntry& entry : round.entries) sizes.local.push_back(entry.batch + 1);
    return sizes;
  }
  void Reset() override {}
};

class ProtocolTest : public testing::Test {
 protected:
  void SetUp() override {
    ServiceOptions options;
    options.epoch = 5;
    options.max_jobs = 2;
    options.gate = {.lease_s = 240, .round_deadline_s = 120};
    options.job_options = [](const std::string&, int) {
      ArbitratorOptions own;
      own.guard.on = false;
      return own;
    };
    service_ =
        std::move(Service::Start(options,
                                 {"growing", {}, [] { return std::make_unique<GrowingPolicy>(); }}))
            .value();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(service_->port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Arbitrator::NewStub(channel_);
  }

  static void Name(v1::Worker& worker, int rank, std::uint64_t incarnation,
                   const std::string& job = "job") {
    worker.set_job(job);
    worker.set_rank(rank);
    worker.set_incarnation(incarnation);
  }
  grpc::Status Join(int rank = 0, std::uint64_t incarnation = 7, int size = 1,
                    const std::string& job = "job") {
    grpc::ClientContext context;
    v1::JoinRequest request;
    v1::JoinResponse response;
    Name(*request.mutable_worker(), rank, incarnation, job);
    request.set_size(size);
    request.set_feature_hash(FeatureHash());
    return stub_->Join(&context, request, &response);
  }
  grpc::Status Leave(const std::string& job = "job") {
    grpc::ClientContext context;
    v1::LeaveRequest request;
    v1::LeaveResponse response;
    Name(*request.mutable_worker(), 0, 7, job);
    return stub_->Leave(&context, request, &response);
  }
  static v1::ReportRequest Request(std::int64_t window, int rank = 0,
                                   std::uint64_t incarnation = 7) {
    v1::ReportRequest request;
    Name(*request.mutable_worker(), rank, incarnation);
    request.set_window(window);
    request.mutable_bounds()->set_min(4);
    request.mutable_bounds()->set_max(256);
    request.mutable_bounds()->set_granularity(1);
    request.set_start_batch(16);
    request.set_batch(16);
    request.set_iterations(10);
    request.set_iteration_ms(10);
    request.set_compute_ms(10);
    return request;
  }
  grpc::Status Report(const v1::ReportRequest& request) {
    grpc::ClientContext context;
    return stub_->Report(&context, request, &advice_);
  }
  // A call of any method with any bytes.
  grpc::Status Send(const std::string& method, const std::string& bytes, std::string* answer) {
    grpc::GenericStub generic(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    grpc::Status status;
    const auto call = generic.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    std::vector<grpc::Slice> slices;
    if (status.ok() && answer != nullptr && response.Dump(&slices).ok())
      for (const grpc::Slice& part : slices)
        answer->append(reinterpret_cast<const char*>(part.begin()), part.size());
    return status;
  }

  std::unique_ptr<Service> service_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Arbitrator::Stub> stub_;
  v1::Advice advice_;
};

TEST_F(ProtocolTest, ALostAnswerIsGivenAgainAndNotDecidedAgain) {
  ASSERT_TRUE(Join().ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Report(Request(3)).ok());
    EXPECT_EQ(advice_.batch(), 17);
    EXPECT_EQ(advice_.window(), 3);
    EXPECT_EQ(advice_.epoch(), 5u);
  }
  EXPECT_EQ(service_->counts().rounds, 1);
}

TEST_F(ProtocolTest, ReorderedAndReplayedReportsChangeNothing) {
  ASSERT_TRUE(Join().ok());
  for (const std::int64_t window : {0, 1, 2}) ASSERT_TRUE(Report(Request(window)).ok());
  for (const std::int64_t window : {1, 0}) {
    ASSERT_TRUE(Report(Request(window)).ok());
    EXPECT_FALSE(advice_.has_batch());
  }
  ASSERT_TRUE(Report(Request(3)).ok());
  EXPECT_EQ(advice_.batch(), 17);
  EXPECT_EQ(service_->counts().rounds, 4);
}

TEST_F(ProtocolTest, StrangersAndReplacedProcessesAreRefused) {
  EXPECT_EQ(Report(Request(0)).error_code(), StatusCode::NOT_FOUND);
  ASSERT_TRUE(Join(0, 7, 2).ok());
  EXPECT_EQ(Report(Request(0, 5)).error_code(), StatusCode::NOT_FOUND) << "no such rank";
  ASSERT_TRUE(Join(0, 8, 2).ok());
  EXPECT_THAT(Report(Request(0, 0, 7)).error_message(), HasSubstr("another process"));
  EXPECT_THAT(Join(0, 7, 2).error_message(), HasSubstr("newer process"));
}

TEST_F(ProtocolTest, AnImpossibleWindowIsRefusedAndTheOthersGoOn) {
  ASSERT_TRUE(Join(0, 7, 2).ok());
  ASSERT_TRUE(Join(1, 7, 2).ok());
  EXPECT_EQ(Report(Request(std::int64_t{1} << 53, 1)).error_code(), StatusCode::INVALID_ARGUMENT);
  std::thread first([this] {
    grpc::ClientContext context;
    v1::Advice advice;
    EXPECT_TRUE(stub_->Report(&context, Request(0, 0), &advice).ok());
    EXPECT_EQ(advice.batch(), 17);
  });
  EXPECT_TRUE(Report(Request(0, 1)).ok());
  EXPECT_EQ(advice_.batch(), 17);
  first.join();
}

TEST_F(ProtocolTest, AJobWithoutWorkersMakesRoomForAnother) {
  ASSERT_TRUE(Join(0, 7, 1, "running").ok());
  for (const char* job : {"first", "second", "third"}) {
    EXPECT_TRUE(Join(0, 7, 1, job).ok()) << job;
    EXPECT_TRUE(Leave(job).ok());
  }
  ASSERT_TRUE(Join(0, 7, 1, "holder").ok());
  EXPECT_THAT(Join(0, 7, 1, "another").error_message(), HasSubstr("no room")) << "two jobs run";
  EXPECT_EQ(service_->counts().workers, 2) << "a job with workers was never forgotten";
}

TEST_F(ProtocolTest, WhoeverWaitsWhenAJobIsReplacedIsAnsweredAtOnce) {
  ASSERT_TRUE(Join(0, 7, 2).ok());
  grpc::Status status;
  std::thread waiting([&] {
    grpc::ClientContext context;
    v1::Advice advice;
    status = stub_->Report(&context, Request(0, 0), &advice);  // rank 1 never comes
  });
  while (service_->counts().reports == 0) std::this_thread::yield();
  ASSERT_TRUE(Leave().ok());
  ASSERT_TRUE(Join(0, 8, 3).ok()) << "another run of that name";
  waiting.join();
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND) << "join anew";
}

TEST_F(ProtocolTest, HostileMeasurementsGetLegalAdvice) {
  ASSERT_TRUE(Join().ok());
  const double hostile[] = {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(),
                            -1,
                            0,
                            1e308,
                            -1e308,
                            5e-324};
  std::int64_t window = 0;
  for (const double value : hostile) {
    v1::ReportRequest request = Request(window++);
    request.set_iteration_ms(value);
    request.set_compute_ms(value);
    request.set_wait_ms(value);
    request.set_communication_ms(value);
    request.mutable_training()->set_loss(value);
    request.mutable_training()->set_noise_scale(value);
    request.mutable_training()->set_learning_rate(value);
    request.mutable_network()->set_tier(1 << 30);
    request.mutable_network()->set_smoothed_rtt_us(value);
    request.mutable_host()->set_memory_limit_bytes(value);
    ASSERT_TRUE(Report(request).ok()) << value;
    EXPECT_EQ(advice_.batch(), 17) << value;
  }
}

TEST_F(ProtocolTest, MalformedAndOversizedMessagesAreRefusedAndTheServiceLives) {
  ASSERT_TRUE(Join().ok());
  const std::string method = "/dynamix.v1.Arbitrator/Report";
  EXPECT_FALSE(Send(method, std::string(200, '\xff'), nullptr).ok());
  EXPECT_FALSE(Send(method, "", nullptr).ok());
  EXPECT_EQ(Send(method, std::string(100 << 10, 'x'), nullptr).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Send("/dynamix.v1.Arbitrator/Nothing", "", nullptr).error_code(),
            StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(Report(Request(0)).ok());
}

TEST_F(ProtocolTest, TellsItsHealth) {
  std::string answer;
  ASSERT_TRUE(Send("/grpc.health.v1.Health/Check", "", &answer).ok());
  EXPECT_EQ(answer, std::string("\x08\x01", 2)) << "SERVING";
}

TEST_F(ProtocolTest, ReflectionIsOffUnlessAskedFor) {
  EXPECT_EQ(Send("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "", nullptr)
                .error_code(),
            StatusCode::UNIMPLEMENTED);
}

// An arbitrator that lies.
class Liar final : public v1::Arbitrator::Service {
 public:
  grpc::Status Open(grpc::ServerContext*, const v1::OpenRequest* request,
                    v1::Opening* opening) override {
    opening->set_batch(request->start_batch() == 16 ? -7 : std::numeric_limits<int>::max());
    return grpc::Status::OK;
  }
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*,
                    v1::JoinResponse* response) override {
    response->set_epoch(10);
    response->set_lease_ms(-5);
    return grpc::Status::OK;
  }
  grpc::Status Report(grpc::ServerContext*, const v1::ReportRequest* request,
                      v1::Advice* advice) override {
    advice->set_epoch(10);
    advice->set_window(request->window());
    advice->set_valid_windows(3);
    switch (request->window() % 8) {
      case 0:
        advice->set_batch(std::numeric_limits<int>::max());
        break;
      case 1:
        advice->set_batch(-7);
        break;
      case 2:
        advice->set_batch(1 << 24);
        break;
      case 3:
        advice->set_batch(1);
        break;
      case 4:
        advice->set_window(request->window() + 1000);
        advice->set_batch(100);
        break;
      case 5:
        advice->set_window(request->window() - 4);
        advice->set_batch(100);
        break;
      case 6:
        advice->set_epoch(9);
        advice->set_batch(100);
        break;
      case 7:
        return {StatusCode::INTERNAL, std::string(2000, 'x')};
    }
    return grpc::Status::OK;
  }
};

TEST(LiarTest, AdviceThatCannotBeTrustedIsClampedOrDropped) {
  Liar liar;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&liar);
  const auto server = builder.BuildAndStart();
  RemoteAdvisorOptions options;
  options.addresses = "127.0.0.1:" + std::to_string(port);
  options.timeout_s = options.patience_s = 120;
  options.breaker_failures = 2;
  const BatchBounds bounds{.min = 8, .max = 64, .granularity = 8};
  for (std::int64_t window = 8; window < 16; ++window) {
    RemoteAdvisor advisor(options);
    RoundEntry entry{.bounds = bounds, .start_batch = 16, .batch = 16};
    entry.report = Report{.iterations = 5};
    (void)advisor.Submit(window, entry);
    const auto refused = [&] { return advisor.counts().dropped + advisor.counts().failed > 0; };
    Answer answer;
    while (!(answer = advisor.Poll()).ready && !refused())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (window % 8 == 2) {
      EXPECT_EQ(answer.batch, 64);
    } else if (window % 8 == 3) {
      EXPECT_EQ(answer.batch, 8);
    } else {
      EXPECT_FALSE(answer.batch.has_value()) << window % 8;
      EXPECT_TRUE(refused()) << window % 8;
    }
  }
  options.opening_s = 120;
  for (const int start : {16, 32})
    EXPECT_EQ(RemoteAdvisor(options)
                  .Open({.bounds = bounds, .start_batch = start, .batch = start, .report = {}}, 0)
                  .value(),
              std::nullopt);
  server->Shutdown(gpr_time_from_millis(100, GPR_TIMESPAN));
}

TEST_F(ProtocolTest, AQuestionBeforeTheFirstIterationIsCheckedAsAReportIs) {
  const auto ask = [&](int size, int min, int start, double job_start = 0) {
    grpc::ClientContext context;
    v1::OpenRequest request;
    v1::Opening opening;
    Name(*request.mutable_join()->mutable_worker(), 0, 7);
    request.mutable_join()->set_size(size);
    request.mutable_join()->set_feature_hash(FeatureHash());
    request.mutable_bounds()->set_min(min);
    request.mutable_bounds()->set_max(64);
    request.mutable_bounds()->set_granularity(1);
    request.set_start_batch(start);
    request.set_job_start(job_start);
    return stub_->Open(&context, request, &opening);
  };
  EXPECT_TRUE(ask(2, 4, 16).ok());
  EXPECT_THAT(ask(0, 4, 16).error_message(), HasSubstr("size = 0"));
  EXPECT_THAT(ask(2, -4, 16).error_message(), HasSubstr("bounds"));
  EXPECT_THAT(ask(2, 4, 0).error_message(), HasSubstr("start_batch = 0"));
  EXPECT_TRUE(ask(2, 4, 16, 17).ok());
  for (const double job_start : {16.0, -1.0, 1e300, std::nan("")})
    EXPECT_THAT(ask(2, 4, 16, job_start).error_message(), HasSubstr("job_start = "));
}

}  // namespace
}  // namespace dynamix
