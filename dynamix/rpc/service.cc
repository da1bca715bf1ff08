#include "dynamix/rpc/service.h"

#include <dlfcn.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/arbitrator.grpc.pb.h"
#include "dynamix/rpc/async_server.h"
#include "dynamix/rpc/health.grpc.pb.h"
#include "dynamix/rpc/job_table.h"
#include "dynamix/rpc/listener.h"
#include "dynamix/rpc/rate_limit.h"
#include "dynamix/rpc/server_tls.h"
#include "dynamix/rpc/wire.h"

namespace dynamix {
namespace {

using grpc::ServerContext;
using grpc::StatusCode;

// Names in the peer's certificate; empty without TLS.
std::vector<std::string> PeerNames(const ServerContext& context) {
  std::vector<std::string> names;
  for (const auto& name :
       context.auth_context()->FindPropertyValues("x509_subject_alternative_name"))
    names.emplace_back(name.data(), name.size());
  return names;
}

std::string_view GivenToken(const ServerContext& context) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return {};
  const std::string_view value(found->second.data(), found->second.size());
  return value.starts_with(kScheme) ? value.substr(kScheme.size()) : std::string_view{};
}

grpc::Status StatusOf(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return grpc::Status::OK;
    case Refusal::kUnknown:
      return {StatusCode::NOT_FOUND, "join first"};
    case Refusal::kReplaced:
      return {StatusCode::FAILED_PRECONDITION, "another process has this rank"};
    case Refusal::kSuperseded:
      return {StatusCode::ABORTED, "the same worker asked again"};
    case Refusal::kTooFar:
      return {StatusCode::INVALID_ARGUMENT, "window: the other workers cannot have reached it"};
    case Refusal::kShutDown:
      break;
  }
  return {StatusCode::UNAVAILABLE, "the arbitrator is shutting down"};
}

// The methods: check who asks and what, hand over to the table.
class Methods {
 public:
  // All are borrowed: the implementation owns them and they outlive the calls.
  Methods(const ServiceOptions& options, JobTable& table, AsyncServer& server)
      : options_(options), table_(table), server_(server) {}

  void Register(grpc::ServerBuilder& builder) {
    builder.RegisterService(&arbitrator_);
    builder.RegisterService(&health_);
  }

  // Posts one call of every method.
  void Listen(grpc::ServerCompletionQueue& queue) {
    Listen<v1::OpenRequest, v1::Opening>(queue, arbitrator_, &Arbitrator::RequestOpen,
                                         &Methods::Open);
    Listen<v1::JoinRequest, v1::JoinResponse>(queue, arbitrator_, &Arbitrator::RequestJoin,
                                              &Methods::Join);
    Listen<v1::LeaveRequest, v1::LeaveResponse>(queue, arbitrator_, &Arbitrator::RequestLeave,
                                                &Methods::Leave);
    Listen<v1::SetPolicyRequest, v1::SetPolicyResponse>(
        queue, arbitrator_, &Arbitrator::RequestSetPolicy, &Methods::SetPolicy);
    Listen<HealthRequest, HealthResponse>(queue, health_, &Health::RequestCheck, &Methods::Check);
    UnaryCall<v1::ReportRequest, v1::Advice>::Post(
        server_, queue,
        [this](auto* context, auto* request, auto* responder, auto* own, Tag* tag) {
          arbitrator_.RequestReport(context, request, responder, own, own, tag);
        },
        [this](auto& call) { Report(call); });
  }

 private:
  using Arbitrator = v1::Arbitrator::AsyncService;
  using Health = grpc::health::v1::Health::AsyncService;
  using HealthRequest = grpc::health::v1::HealthCheckRequest;
  using HealthResponse = grpc::health::v1::HealthCheckResponse;

  // A method that is answered at once.
  template <typename Request, typename Response, typename Service, typename Wait>
  void Listen(grpc::ServerCompletionQueue& queue, Service& service, Wait wait,
              grpc::Status (Methods::*answer)(const ServerContext&, const Request&, Response&)) {
    UnaryCall<Request, Response>::Post(
        server_, queue,
        [&service, wait](auto* context, auto* request, auto* responder, auto* own, Tag* tag) {
          (service.*wait)(context, request, responder, own, own, tag);
        },
        [this, answer](auto& call) {
          grpc::Status status;
          try {
            status = (this->*answer)(call.context(), call.request(), call.response());
          } catch (const std::exception& error) {
            status = {StatusCode::INTERNAL, error.what()};
          }
          Finish(call, status);
        });
  }

  grpc::Status Open(const ServerContext& context, const v1::OpenRequest& request,
                    v1::Opening& response) {
    const Result<OpenMessage> message = Read(request);
    if (!message) return {StatusCode::INVALID_ARGUMENT, message.error()};
    if (grpc::Status allowed = Allow(context, message.value().join.worker); !allowed.ok())
      return allowed;
    const Result<Opening> opening = table_.OpeningOf(message.value());
    if (!opening) return {StatusCode::FAILED_PRECONDITION, opening.error()};
    Write(opening.value(), response);
    return grpc::Status::OK;
  }

  grpc::Status Join(const ServerContext& context, const v1::JoinRequest& request,
                    v1::JoinResponse& response) {
    const Result<JoinMessage> message = Read(request);
    if (!message) return {StatusCode::INVALID_ARGUMENT, message.error()};
    if (grpc::Status allowed = Allow(context, message.value().worker); !allowed.ok())
      return allowed;
    const Result<Welcome> welcome = table_.Join(message.value());
    if (!welcome) return {StatusCode::FAILED_PRECONDITION, welcome.error()};
    Write(welcome.value(), response);
    return grpc::Status::OK;
  }

  using ReportCall = UnaryCall<v1::ReportRequest, v1::Advice>;

  void Report(ReportCall& call) {
    Result<ReportMessage> message = Error{""};
    std::shared_ptr<ServedJob> job;
    grpc::Status status;
    try {
      status = AdmitReport(call, message, job);
    } catch (const std::exception& error) {
      status = {StatusCode::INTERNAL, error.what()};
    }
    if (!status.ok()) return Finish(call, status);
    table_.CountReport();
    job->Report(message.value(), std::chrono::steady_clock::now(),
                [this, &call](Refusal refusal, const Advice& advice) {
                  if (refusal == Refusal::kNone) Write(advice, call.response());
                  if (refusal == Refusal::kTooFar) return Finish(call, StatusOf(refusal));
                  call.Finish(StatusOf(refusal));
                });
  }

  grpc::Status AdmitReport(const ReportCall& call, Result<ReportMessage>& message,
                           std::shared_ptr<ServedJob>& job) {
    message = Read(call.request());
    if (!message) return {StatusCode::INVALID_ARGUMENT, message.error()};
    const WorkerName& worker = message.value().worker;
    if (grpc::Status allowed = Allow(call.context(), worker); !allowed.ok()) return allowed;
    if (message.value().highest_epoch > options_.epoch)
      return {StatusCode::FAILED_PRECONDITION, "this arbitrator is stale"};
    job = table_.Find(worker.job);
    if (job == nullptr || worker.rank >= job->size()) return StatusOf(Refusal::kUnknown);
    return grpc::Status::OK;
  }

  grpc::Status Leave(const ServerContext& context, const v1::LeaveRequest& request,
                     v1::LeaveResponse&) {
    const Result<WorkerName> worker = Read(request.worker());
    if (!worker) return {StatusCode::INVALID_ARGUMENT, worker.error()};
    if (grpc::Status allowed = Allow(context, worker.value()); !allowed.ok()) return allowed;
    const std::shared_ptr<ServedJob> job = table_.Find(worker.value().job);
    if (job && worker.value().rank < job->size())
      job->Leave(worker.value(), std::chrono::steady_clock::now());
    return grpc::Status::OK;
  }

  grpc::Status SetPolicy(const ServerContext& context, const v1::SetPolicyRequest& request,
                         v1::SetPolicyResponse& response) {
    if (grpc::Status allowed = AllowToken(context); !allowed.ok()) return allowed;
    if (!options_.tls.empty() && !MayAdminister(PeerNames(context)))
      return {StatusCode::PERMISSION_DENIED, "the certificate is not an administrator's"};
    std::string wrong = "policies cannot be swapped here";
    if (options_.find_policy) {
      try {
        const PolicySpec policy = options_.find_policy(request.policy());
        table_.SetPolicy(policy);
        table_.Log({.event = "policy_swapped", .detail = policy.name});
        response.set_policy(policy.name);
        return grpc::Status::OK;
      } catch (const std::exception& error) {
        wrong = error.what();
      }
    }
    // One answer, whatever was wrong: a caller must not be able to probe this machine's files.
    Warn("policy_kept", wrong);
    return {
        StatusCode::INVALID_ARGUMENT,
        "policy: not the name of a rule or of a shipped policy (the arbitrator's log says more)"};
  }

  grpc::Status Check(const ServerContext&, const HealthRequest& request, HealthResponse& response) {
    if (!request.service().empty() && request.service() != "dynamix.v1.Arbitrator")
      return {StatusCode::NOT_FOUND, "no such service"};
    response.set_status(HealthResponse::SERVING);
    return grpc::Status::OK;
  }

  template <typename Call>
  void Finish(Call& call, const grpc::Status& status) {
    if (!status.ok() && status.error_code() != StatusCode::NOT_FOUND) {
      table_.CountRefusal();
      Warn("refused", call.context().peer() + ": " + status.error_message());
    }
    call.Finish(status);
  }

  // For what callers can cause as often as they like.
  void Warn(const char* event, std::string text) {
    {
      const std::lock_guard lock(warnings_mutex_);
      if (!warnings_.Pass(std::chrono::steady_clock::now())) return;
      if (const std::int64_t held = warnings_.TakeHeld(); held > 0)
        text += " (" + std::to_string(held) + " more lines were held back before)";
    }
    table_.Log({LogEvent::Level::kWarning, event, "", -1, text});
  }

  grpc::Status AllowToken(const ServerContext& context) const {
    if (options_.token.empty() || SameToken(GivenToken(context), options_.token))
      return grpc::Status::OK;
    return {StatusCode::UNAUTHENTICATED, "the token is missing or wrong"};
  }

  grpc::Status Allow(const ServerContext& context, const WorkerName& worker) const {
    if (grpc::Status allowed = AllowToken(context); !allowed.ok()) return allowed;
    if (options_.tls.empty() || MaySpeakAs(PeerNames(context), worker)) return grpc::Status::OK;
    return {StatusCode::PERMISSION_DENIED, "the certificate is not that of rank " +
                                               std::to_string(worker.rank) + " of job " +
                                               worker.job};
  }

  const ServiceOptions& options_;
  JobTable& table_;
  AsyncServer& server_;
  Arbitrator arbitrator_;
  Health health_;
  std::mutex warnings_mutex_;
  RateLimit warnings_{/*per_second=*/1, /*burst=*/20};
};

// gRPC takes a function without data, so where it sends its words is one place for the process.
std::atomic<void (*)(const std::string&)> g_transport_log = nullptr;

void OnTransportLog(gpr_log_func_args* line) {
  if (auto* log = g_transport_log.load()) log(line->message);
}

void OnMessageLog(google::protobuf::LogLevel, const char*, int, const std::string& text) {
  if (auto* log = g_transport_log.load()) log(text);
}

void Limit(const ServiceOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.message_bytes);
  builder.SetMaxSendMessageSize(options.message_bytes);
  grpc::ResourceQuota quota("dynamix");
  quota.Resize(std::size_t{512} << 20);
  builder.SetResourceQuota(quota);
  // One worker, one connection, a handful of calls; a gateway may carry a whole job.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 2 * kMaxWorkers);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 4);
  // Workers renew their lease, so a connection without calls for so long serves nobody.
  const double idle_s = std::max(60.0, options.gate.lease_s);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(1e3 * idle_s));
}

}  // namespace

void ServiceOptions::Validate() const {
  if (!address.starts_with("unix:")) RequireHostPort("address", address);
  if (tls.empty() && !IsLoopback(address))
    throw InputError::OutOfRange(
        "address", address,
        "a loopback address, or certificates for any other (scripts/make-certs)");
  if (!tls.empty())
    if (const std::string wrong = CheckTls(tls); !wrong.empty()) throw InputError(wrong);
  gate.Validate();
  RequireInRange("valid_windows", valid_windows, 1, 1000);
  RequireInRange("max_jobs", max_jobs, 1, 100000);
  RequireInRange("max_workers", max_workers, 1, kMaxWorkers);
  RequireInRange("max_connections", max_connections, 1, 1000000);
  RequireInRange("job_memory_s", job_memory_s, 0.0, 1e9);
  RequireInRange("message_bytes", message_bytes, 1 << 10, 16 << 20);
}

class Service::Implementation {
 public:
  Implementation(const ServiceOptions& wanted, const PolicySpec& policy)
      : options(wanted), tls(wanted.tls), table(wanted, policy), methods(options, table, server) {}

  Status Listen() {
    // Not linked: the library switches reflection on for every server of the process that loads it.
    if (options.reflection && dlopen(DYNAMIX_GRPC_REFLECTION, RTLD_NOW | RTLD_GLOBAL) == nullptr)
      table.Log({LogEvent::Level::kWarning, "no_reflection", "", -1, dlerror()});
    Result<std::unique_ptr<Listener>> opened =
        Listener::Open({options.address, options.max_connections, [this](const std::string& text) {
                          table.Log({LogEvent::Level::kWarning, "turned_away", "", -1, text});
                        }});
    if (!opened) return Error{opened.error()};
    listener = std::move(opened).value();
    grpc::ServerBuilder builder;
    Limit(options, builder);
    acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, tls.credentials());
    methods.Register(builder);
    server.AddQueues(builder, kQueues);
    std::unique_ptr<grpc::Server> built = builder.BuildAndStart();
    if (built == nullptr) return Error{"gRPC cannot serve on " + options.address};
    server.Start(std::move(built),
                 [this](grpc::ServerCompletionQueue& queue) { methods.Listen(queue); });
    listener->Run([this](int connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.fd = connection;
      acceptor->HandleNewConnection(&parameters);
    });
    return Nothing{};
  }

  void Stop() {
    if (listener) listener->Stop();
    table.ShutDown();
    server.Stop(std::chrono::milliseconds(1000));
  }

  static constexpr int kQueues = 2;

  const ServiceOptions options;
  ServerTls tls;
  JobTable table;
  AsyncServer server;
  Methods methods;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<Listener> listener;
};

Service::Service(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Service::~Service() { implementation_->Stop(); }

Result<std::unique_ptr<Service>> Service::Start(const ServiceOptions& options,
                                                const PolicySpec& policy) {
  options.Validate();
  auto implementation = std::make_unique<Implementation>(options, policy);
  if (Status listens = implementation->Listen(); !listens) return Error{listens.error()};
  return std::unique_ptr<Service>(new Service(std::move(implementation)));
}

void SendTransportLogTo(void (*log)(const std::string& text)) {
  g_transport_log = log;
  gpr_set_log_function(OnTransportLog);
  google::protobuf::SetLogHandler(OnMessageLog);
}

int Service::port() const { return implementation_->listener->port(); }

void Service::SetPolicy(const PolicySpec& policy) {
  implementation_->table.SetPolicy(policy);
  implementation_->table.Log({.event = "policy_swapped", .detail = policy.name});
}

Status Service::SetTls(const TlsFiles& tls) {
  Status replaced = implementation_->tls.Replace(tls);
  if (replaced) implementation_->table.Log({.event = "certificates_loaded"});
  return replaced;
}

ServiceCounts Service::counts() const {
  ServiceCounts counts = implementation_->table.counts();
  counts.turned_away = implementation_->listener->turned_away();
  return counts;
}

}  // namespace dynamix
