#include "dynamix/rpc/server_tls.h"

#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr unsigned kLookSeconds = 1;

// Under this name the process itself can open its file in memory again.
std::string PathOf(int file) { return "/proc/self/fd/" + std::to_string(file); }

bool Fill(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pwrite(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return ftruncate(file, static_cast<off_t>(text.size())) == 0;
}

}  // namespace

ServerTls::ServerTls(const TlsFiles& files) {
  if (files.empty()) {
    credentials_ = grpc::InsecureServerCredentials();
    return;
  }
  if (const std::string wrong = CheckTls(files); !wrong.empty()) throw InputError(wrong);
  for (int& file : memory_) file = memfd_create("dynamix-tls", MFD_CLOEXEC);
  if (const Status written = Write(files); !written) throw std::runtime_error(written.error());
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          PathOf(memory_[0]), PathOf(memory_[1]), PathOf(memory_[2]), kLookSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  credentials_ = grpc::experimental::TlsServerCredentials(options);
}

ServerTls::~ServerTls() {
  for (const int file : memory_)
    if (file >= 0) close(file);
}

Status ServerTls::Replace(const TlsFiles& files) {
  if (memory_[0] < 0 || files.empty()) return Error{"TLS cannot be switched on or off at run time"};
  if (const std::string wrong = CheckTls(files); !wrong.empty()) return Error{wrong};
  return Write(files);
}

// The three are not replaced at one instant. A handshake in between fails and is tried again; the
// next look finds them whole.
Status ServerTls::Write(const TlsFiles& files) {
  const std::lock_guard lock(mutex_);
  const std::string* texts[] = {&files.key, &files.certificate, &files.authority};
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if (memory_[i] < 0 || !Fill(memory_[i], *texts[i]))
      return Error{std::string("cannot keep certificates in memory: ") + std::strerror(errno)};
  return Nothing{};
}

}  // namespace dynamix
