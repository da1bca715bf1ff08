// Who may speak as whom, with real certificates (scripts/make-certs) over real connections.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dynamix/arbitrator/testing/fixed_policy.h"
#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/rpc/admin.h"
#include "dynamix/rpc/arbitrator.grpc.pb.h"
#include "dynamix/rpc/security.h"
#include "dynamix/rpc/service.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("dynamix_certificates_" + std::to_string(getpid()));
    for (const char* what :
         {"arbitrator 127.0.0.1", "job vision", "job vision 1", "job speech", "admin", "metrics"}) {
      const std::string command = std::string(DYNAMIX_SOURCE_DIR) + "/scripts/make-certs " +
                                  folder_.string() + " " + what + " > /dev/null";
      ASSERT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: a shell script is meant
    }
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  void SetUp() override {
    ServiceOptions options;
    options.gate = {.lease_s = 240, .round_deadline_s = 120};
    options.tls = Files("arbitrator");
    options.find_policy = [](const std::string&) { return Fixed(64); };
    service_ = std::move(Service::Start(options, Fixed(40))).value();
  }

  static TlsFiles Files(const std::string& stem) {
    return {Text("ca.crt"), Text(stem + ".crt"), Text(stem + ".key")};
  }
  static std::string Text(const std::string& name) {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(service_->port()); }
  std::unique_ptr<v1::Arbitrator::Stub> As(const std::string& stem) const {
    const TlsFiles own = Files(stem);
    return v1::Arbitrator::NewStub(grpc::CreateChannel(
        address(), grpc::SslCredentials({own.authority, own.key, own.certificate})));
  }

  static void Name(v1::Worker& worker, const std::string& job, int rank) {
    worker.set_job(job);
    worker.set_rank(rank);
    worker.set_incarnation(7);
  }
  static StatusCode Join(v1::Arbitrator::Stub& stub, const std::string& job, int rank) {
    grpc::ClientContext context;
    v1::JoinRequest request;
    v1::JoinResponse response;
    Name(*request.mutable_worker(), job, rank);
    request.set_size(2);
    request.set_feature_hash(FeatureHash());
    return stub.Join(&context, request, &response).error_code();
  }
  static StatusCode Open(v1::Arbitrator::Stub& stub, const std::string& job, int rank) {
    grpc::ClientContext context;
    v1::OpenRequest request;
    v1::Opening opening;
    Name(*request.mutable_join()->mutable_worker(), job, rank);
    request.mutable_join()->set_size(2);
    request.mutable_join()->set_feature_hash(FeatureHash());
    request.mutable_bounds()->set_min(4);
    request.mutable_bounds()->set_max(256);
    request.mutable_bounds()->set_granularity(1);
    request.set_start_batch(16);
    return stub.Open(&context, request, &opening).error_code();
  }
  static StatusCode Report(v1::Arbitrator::Stub& stub, const std::string& job, int rank) {
    grpc::ClientContext context;
    v1::ReportRequest request;
    v1::Advice advice;
    Name(*request.mutable_worker(), job, rank);
    request.mutable_bounds()->set_min(4);
    request.mutable_bounds()->set_max(256);
    request.mutable_bounds()->set_granularity(1);
    request.set_start_batch(16);
    request.set_batch(16);
    request.set_iterations(10);
    return stub.Report(&context, request, &advice).error_code();
  }
  static StatusCode Leave(v1::Arbitrator::Stub& stub, const std::string& job, int rank) {
    grpc::ClientContext context;
    v1::LeaveRequest request;
    v1::LeaveResponse response;
    Name(*request.mutable_worker(), job, rank);
    return stub.Leave(&context, request, &response).error_code();
  }

  static inline fs::path folder_;
  std::unique_ptr<Service> service_;
};

TEST_F(CertificatesTest, AnotherJobsCertificateMayNeitherJoinNorReportNorLeave) {
  const auto own = As("job-vision"), other = As("job-speech");
  EXPECT_EQ(Open(*own, "vision", 0), StatusCode::OK);
  EXPECT_EQ(Open(*other, "vision", 0), StatusCode::PERMISSION_DENIED);
  ASSERT_EQ(Join(*own, "vision", 0), StatusCode::OK);
  EXPECT_EQ(Join(*other, "vision", 1), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Report(*other, "vision", 0), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Leave(*other, "vision", 0), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(service_->counts().workers, 1) << "the worker is still there";
  EXPECT_EQ(Leave(*own, "vision", 0), StatusCode::OK);
  EXPECT_EQ(service_->counts().workers, 0);
}

TEST_F(CertificatesTest, ARanksCertificateSpeaksForThatRankAlone) {
  const auto one = As("job-vision-1");
  EXPECT_EQ(Join(*one, "vision", 1), StatusCode::OK);
  EXPECT_EQ(Join(*one, "vision", 0), StatusCode::PERMISSION_DENIED);
}

TEST_F(CertificatesTest, AnAdministratorIsNoWorkerAndAWorkerNoAdministrator) {
  EXPECT_EQ(Join(*As("admin"), "vision", 0), StatusCode::PERMISSION_DENIED);
  AdminOptions options{.address = address(), .tls = Files("job-vision")};
  EXPECT_THAT(SwapPolicy(options, "static").error(), HasSubstr("not an administrator"));
  options.tls = Files("metrics");
  EXPECT_THAT(SwapPolicy(options, "static").error(), HasSubstr("not an administrator"));
  options.tls = Files("admin");
  EXPECT_TRUE(SwapPolicy(options, "static").ok());
}

TEST_F(CertificatesTest, WithoutACertificateNobodyConnects) {
  const auto plain =
      v1::Arbitrator::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Join(*plain, "vision", 0), StatusCode::UNAVAILABLE);
  const auto anonymous = v1::Arbitrator::NewStub(
      grpc::CreateChannel(address(), grpc::SslCredentials({Text("ca.crt"), "", ""})));
  EXPECT_EQ(Join(*anonymous, "vision", 0), StatusCode::UNAVAILABLE);
}

TEST_F(CertificatesTest, FilesThatCannotBeUsedAreRefusedWithTheReason) {
  EXPECT_EQ(CheckTls(Files("arbitrator")), "");
  TlsFiles files = Files("arbitrator");
  files.key = Text("admin.key");
  EXPECT_THAT(CheckTls(files), HasSubstr("the key is not that of the certificate"));
  EXPECT_THAT(service_->SetTls(files).error(), HasSubstr("the key is not that"));
  files.key = "nonsense";
  EXPECT_THAT(CheckTls(files), HasSubstr("the key is not one"));
  files = Files("arbitrator");
  files.authority.clear();
  EXPECT_THAT(CheckTls(files), HasSubstr("needs a certificate authority"));
  ServiceOptions options;
  options.tls = files;
  EXPECT_THROW((void)Service::Start(options, Fixed(40)), InputError);
}

}  // namespace
}  // namespace dynamix
