// ServerTls: the service's certificates, which can be replaced while it serves.
//
// gRPC reads them from files in memory that it looks at every second; nobody else can open those.
// New connections get the new certificates; those that exist keep the ones they were made with.
// Thread-safe. A private header of this room: only its .cc files include it.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <array>
#include <memory>
#include <mutex>

#include "dynamix/core/result.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

class ServerTls {
 public:
  // Empty files: no TLS. Throws InputError for certificates that cannot be used (CheckTls).
  explicit ServerTls(const TlsFiles& files);
  ~ServerTls();
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  std::shared_ptr<grpc::ServerCredentials> credentials() const { return credentials_; }
  // An Error when these cannot be used: the ones before stay in force.
  Status Replace(const TlsFiles& files);

 private:
  Status Write(const TlsFiles& files);

  std::mutex mutex_;
  std::array<int, 3> memory_{-1, -1, -1};  // key, certificate, authority
  std::shared_ptr<grpc::ServerCredentials> credentials_;
};

}  // namespace dynamix
