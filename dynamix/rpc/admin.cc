#include "dynamix/rpc/admin.h"

#include <grpcpp/grpcpp.h>

#include "dynamix/rpc/arbitrator.grpc.pb.h"

namespace dynamix {

Result<std::string> SwapPolicy(const AdminOptions& options, const std::string& policy) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.tls_name.empty()) arguments.SetSslTargetNameOverride(options.tls_name);
  const TlsFiles& tls = options.tls;
  const auto stub = v1::Arbitrator::NewStub(grpc::CreateCustomChannel(
      options.address,
      tls.empty() ? grpc::InsecureChannelCredentials()
                  : grpc::SslCredentials({tls.authority, tls.key, tls.certificate}),
      arguments));
  grpc::ClientContext context;
  context.set_deadline(
      gpr_time_from_millis(static_cast<std::int64_t>(1e3 * options.timeout_s), GPR_TIMESPAN));
  if (!options.token.empty()) context.AddMetadata("authorization", "Bearer " + options.token);
  v1::SetPolicyRequest request;
  v1::SetPolicyResponse response;
  request.set_policy(policy);
  const grpc::Status status = stub->SetPolicy(&context, request, &response);
  if (!status.ok())
    return Error{options.address + ": " + (policy.empty() ? "" : policy + ": ") +
                 status.error_message()};
  return response.policy();
}

}  // namespace dynamix
