// Round trip report-to-advice against a bare gRPC echo of the same bytes, in turns, and sustained
// reports per second. One JSON object on stdout. Driven by benchmarks/arbitrator.
//
//   arbitrator_bench                              against a service of this process
//   arbitrator_bench PORT JOBS WORKERS SECONDS    so many jobs of so many workers of an arbitrator
//                                                 that runs here
//
// Workers are calls of one driver thread over `kConnections` connections: a round of N reports is
// sent at once, and each call is timed from its own start to its own answer. The echo servers use
// the same number of completion queues and threads as the arbitrator, and do nothing. One of them
// answers nobody before all have asked, as an arbitrator must.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "dynamix/core/features.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/rpc/arbitrator.pb.h"
#include "dynamix/rpc/service.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kQueues = 2;
constexpr int kConnections = 32;

// Answers every call with the bytes it was sent, `together` of them at a time.
class Echo {
 public:
  explicit Echo(int together) : together_(together) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&service_);
    for (int i = 0; i < kQueues; ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    for (auto& queue : queues_) {
      for (int i = 0; i < 64; ++i) new Call(*this, *queue);
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
    Call(Echo& owner, grpc::ServerCompletionQueue& own) : echo(owner), queue(own) {
      echo.service_.RequestCall(&context, &stream, &queue, &queue, this);
    }
    void Proceed(bool ok) {
      if (!ok || step == 2) {
        delete this;
      } else if (step++ == 0) {
        new Call(echo, queue);
        stream.Read(&bytes, this);
      } else {
        for (Call* call : echo.Asked(this))
          call->stream.WriteAndFinish(call->bytes, {}, grpc::Status::OK, call);
      }
    }
    Echo& echo;
    grpc::ServerCompletionQueue& queue;
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer bytes;
    int step = 0;
  };

  // Those to answer now.
  std::vector<Call*> Asked(Call* call) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(call);
    return static_cast<int>(waiting_.size()) < together_ ? std::vector<Call*>()
                                                         : std::exchange(waiting_, {});
  }

  const int together_;
  std::mutex mutex_;
  std::vector<Call*> waiting_;
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
};

// N workers of each of some jobs, as raw calls.
class Driver {
 public:
  Driver(int port, int workers, int jobs = 1) : workers_(workers), jobs_(jobs) {
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
    for (int rank = 0; rank < jobs_ * workers_; ++rank) {
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
    for (int rank = 0; rank < jobs_ * workers_; ++rank) {
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
    worker.set_job(job_ + std::to_string(rank / workers_));
    worker.set_rank(rank % workers_);
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

  const int workers_, jobs_;
  std::string job_ = "echo";
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
  int pending_ = 0;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

void Compare(dynamix::Service& service, int workers, int rounds, int turns) {
  Echo plain(1), together(workers);
  struct Side {
    const char* name;
    Driver driver;
    std::vector<double> latencies;
  };
  Side sides[] = {{"", {service.port(), workers}, {}},
                  {"echo_", {plain.port, workers}, {}},
                  {"together_", {together.port, workers}, {}}};
  sides[0].driver.Join("bench" + std::to_string(workers));
  for (int turn = 0; turn < turns + 1; ++turn) {
    for (Side& side : sides) {
      if (turn == 1) side.latencies.clear();  // the first one warms up
      for (int i = 0; i < rounds; ++i)
        side.driver.Round("/dynamix.v1.Arbitrator/Report", turn * rounds + i, &side.latencies);
    }
  }
  std::printf("\"workers_%d\":{", workers);
  for (const Side& side : sides)
    std::printf("%s\"%smedian_ms\":%.4f,\"%sp99_ms\":%.4f", &side == sides ? "" : ",", side.name,
                Quantile(side.latencies, 0.5), side.name, Quantile(side.latencies, 0.99));
  std::printf("},");
}

void Sustained(Driver& driver, double seconds) {
  std::vector<double> latencies;
  const Clock::time_point start = Clock::now();
  std::int64_t window = 0;
  double passed = 0;
  while (passed < seconds) {
    driver.Round("/dynamix.v1.Arbitrator/Report", window++, &latencies);
    passed = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::printf("\"reports_per_s\":%.0f,\"median_ms\":%.4f,\"p99_ms\":%.4f,\"rounds\":%lld}\n",
              static_cast<double>(latencies.size()) / passed, Quantile(latencies, 0.5),
              Quantile(latencies, 0.99), static_cast<long long>(window));
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("{");
  if (argc == 5) {
    Driver driver(std::atoi(argv[1]), std::atoi(argv[3]), std::atoi(argv[2]));
    driver.Join("scale");
    Sustained(driver, std::atof(argv[4]));
    return 0;
  }
  dynamix::ServiceOptions options;
  options.max_jobs = 8;
  const dynamix::PolicySpec policy{"goodput", {}, [] { return dynamix::MakePolicy("goodput"); }};
  auto service = dynamix::Service::Start(options, policy);
  if (!service.ok()) return std::fprintf(stderr, "%s\n", service.error().c_str()), 1;
  Compare(*service.value(), 32, 60, 8);
  Compare(*service.value(), 1024, 4, 4);
  Driver driver(service.value()->port(), 256);
  driver.Join("sustained");
  Sustained(driver, 3);
}
