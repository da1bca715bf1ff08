// Round trip report-to-advice against a bare gRPC echo of the same bytes, in turns, and sustained
// reports per second. One JSON object on stdout. Driven by benchmarks/arbitrator.
//
// Workers are calls of one driver thread over `kConnections` connections: a round of N reports is
// sent at once, and each call is timed from its own start to its own answer. The echo server uses
// the same number of completion queues and threads as the arbitrator, and does nothing.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "dynamix/core/features.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/rpc/arbitrator.pb.h"
#include "dynamix/rpc/service.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kQueues = 2;
constexpr int kConnections = 32;

// Answers every call with the bytes it was sent.
class Echo {
 public:
  Echo() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&service_);
    for (int i = 0; i < kQueues; ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    for (auto& queue : queues_) {
      for (int i = 0; i < 64; ++i) new Call(service_, *queue);
      threads_.emplace_back([&own = *queue] {
        void* tag = nullptr;
        for (bool ok = false; own.Next(&tag, &ok);) static_cast<Call*>(tag)->Proceed(ok);
      });
    }
  }
  ~Echo() {
    server_->Shutdown(gpr_time_from_millis(100, GPR_TIMESPAN));
    for (auto& queue : queues_) queue->Shutdown();
    for (std::thread& thread : threads_) thread.join();
  }

  int port = 0;

 private:
  struct Call {
    Call(grpc::AsyncGenericService& owner, grpc::ServerCompletionQueue& own)
        : service(owner), queue(own) {
      service.RequestCall(&context, &stream, &queue, &queue, this);
    }
    void Proceed(bool ok) {
      if (!ok || step == 2) {
        delete this;
      } else if (step++ == 0) {
        new Call(service, queue);
        stream.Read(&bytes, this);
      } else {
        stream.WriteAndFinish(bytes, {}, grpc::Status::OK, this);
      }
    }
    grpc::AsyncGenericService& service;
    grpc::ServerCompletionQueue& queue;
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer bytes;
    int step = 0;
  };

  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
};

// N workers of one job, as raw calls.
class Driver {
 public:
  Driver(int port, int workers) : workers_(workers) {
    for (int c = 0; c < std::min(workers, kConnections); ++c) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
          "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  void Join(const std::string& job) {
    job_ = job;
    dynamix::v1::JoinRequest request;
    for (int rank = 0; rank < workers_; ++rank) {
      Name(*request.mutable_worker(), rank);
      request.set_size(workers_);
      request.set_feature_hash(dynamix::FeatureHash());
      Send("/dynamix.v1.Arbitrator/Join", rank, request.SerializeAsString());
    }
    Collect(nullptr);
  }

  // Adds the milliseconds of each call of a round.
  void Round(const std::string& method, std::int64_t window, std::vector<double>* latencies) {
    dynamix::v1::ReportRequest request;
    request.set_window(window);
    request.mutable_bounds()->set_min(4);
    request.mutable_bounds()->set_max(256);
    request.mutable_bounds()->set_granularity(1);
    request.set_start_batch(32);
    request.set_batch(32);
    request.set_iterations(20);
    for (int rank = 0; rank < workers_; ++rank) {
      Name(*request.mutable_worker(), rank);
      request.set_iteration_ms(100);
      request.set_compute_ms(50 + rank % 7);
      request.mutable_training()->set_loss(1);
      request.mutable_training()->set_noise_scale(500);
      request.mutable_network()->set_smoothed_rtt_us(200);
      request.mutable_network()->set_minimum_rtt_us(100);
      request.mutable_host()->set_cpu_use(0.5);
      Send(method, rank, request.SerializeAsString());
    }
    Collect(latencies);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    Clock::time_point start;
  };

  void Name(dynamix::v1::Worker& worker, int rank) const {
    worker.set_job(job_);
    worker.set_rank(rank);
    worker.set_incarnation(1);
  }

  void Send(const std::string& method, int rank, const std::string& bytes) {
    auto call = std::make_unique<Call>();
    grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    call->start = Clock::now();
    call->reader =
        stubs_[rank % stubs_.size()]->PrepareUnaryCall(&call->context, method, request, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call.get());
    (void)call.release();  // Collect takes it back
    ++pending_;
  }

  void Collect(std::vector<double>* latencies) {
    for (; pending_ > 0; --pending_) {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      if (!call->status.ok()) {
        std::fprintf(stderr, "arbitrator_bench: %s\n", call->status.error_message().c_str());
        std::exit(1);
      }
      if (latencies != nullptr)
        latencies->push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - call->start).count());
    }
  }

  const int workers_;
  std::string job_ = "echo";
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
  int pending_ = 0;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

void Compare(dynamix::Service& service, Echo& echo, int workers, int rounds, int turns) {
  Driver advised(service.port(), workers), echoed(echo.port, workers);
  advised.Join("bench" + std::to_string(workers));
  std::vector<double> ours, theirs;
  std::int64_t window = 0;
  const std::string report = "/dynamix.v1.Arbitrator/Report";
  for (int turn = 0; turn < turns + 1; ++turn) {
    if (turn == 1) ours.clear(), theirs.clear();  // the first one warms up
    for (int i = 0; i < rounds; ++i) advised.Round(report, window++, &ours);
    for (int i = 0; i < rounds; ++i) echoed.Round(report, i, &theirs);
  }
  std::printf(
      "\"workers_%d\":{\"median_ms\":%.4f,\"p99_ms\":%.4f,\"echo_median_ms\":%.4f,"
      "\"echo_p99_ms\":%.4f},",
      workers, Quantile(ours, 0.5), Quantile(ours, 0.99), Quantile(theirs, 0.5),
      Quantile(theirs, 0.99));
}

double Sustained(dynamix::Service& service, int workers, double seconds) {
  Driver driver(service.port(), workers);
  driver.Join("sustained");
  std::vector<double> latencies;
  const Clock::time_point start = Clock::now();
  std::int64_t window = 0;
  double passed = 0;
  while (passed < seconds) {
    driver.Round("/dynamix.v1.Arbitrator/Report", window++, &latencies);
    passed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(latencies.size()) / passed;
}

}  // namespace

int main() {
  dynamix::ServiceOptions options;
  options.max_jobs = 8;
  const dynamix::PolicySpec policy{"goodput", {}, [] { return dynamix::MakePolicy("goodput"); }};
  auto service = dynamix::Service::Start(options, policy);
  if (!service.ok()) return std::fprintf(stderr, "%s\n", service.error().c_str()), 1;
  Echo echo;
  std::printf("{");
  Compare(*service.value(), echo, 32, 60, 8);
  Compare(*service.value(), echo, 1024, 4, 4);
  std::printf("\"reports_per_s\":%.0f}\n", Sustained(*service.value(), 256, 3));
}
