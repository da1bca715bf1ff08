#include "dynamix/rpc/metrics_server.h"

#include <httplib.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>

#include "dynamix/rpc/pem.h"

namespace dynamix {
namespace {

constexpr int kThreads = 8;  // connections served at once
constexpr int kTimeoutS = 2;

bool SetUpTls(SSL_CTX& context, const TlsFiles& tls) {
  const Certificate own = ReadCertificate(tls.certificate);
  const Certificate authority = ReadCertificate(tls.authority);
  const Key key = ReadKey(tls.key);
  if (!own || !authority || !key) return false;
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_CTX_use_certificate(&context, own.get()) == 1 &&
         SSL_CTX_use_PrivateKey(&context, key.get()) == 1 &&
         X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) == 1;
}

bool MayRead(const httplib::Request& request) {
  const Certificate peer(SSL_get1_peer_certificate(request.ssl), X509_free);
  return peer != nullptr && MayReadMetrics(UrisOf(*peer));
}

}  // namespace

class MetricsServer::Implementation {
 public:
  Implementation(const TlsFiles& tls, std::function<std::string()> text) {
    if (tls.empty())
      server_ = std::make_unique<httplib::Server>();
    else
      server_ = std::make_unique<httplib::SSLServer>(
          [&tls](SSL_CTX& context) { return SetUpTls(context, tls); });
    server_->set_read_timeout(kTimeoutS);
    server_->set_write_timeout(kTimeoutS);
    server_->set_keep_alive_timeout(kTimeoutS);
    server_->set_payload_max_length(1024);
    server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // The library's own options would let another process share the port.
    server_->set_socket_options([](int socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_->Get("/metrics", [secure = !tls.empty(), text = std::move(text)](
                                 const httplib::Request& request, httplib::Response& response) {
      if (secure && !MayRead(request)) {
        response.status = 403;
        return;
      }
      response.set_content(text(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }

  ~Implementation() {
    if (!thread_.joinable()) return;
    while (!server_->is_running()) std::this_thread::yield();  // before that, stop does nothing
    server_->stop();
    thread_.join();
  }

  Status Listen(const std::string& host, int port) {
    if (!server_->is_valid()) return Error{"the certificates cannot be used"};
    errno = 0;
    const bool bound = port == 0 ? (port_ = server_->bind_to_any_port(host)) > 0
                                 : server_->bind_to_port(host, port);
    if (!bound) return Error{errno != 0 ? std::strerror(errno) : "no such address"};
    if (port != 0) port_ = port;
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    return Nothing{};
  }

  int port() const { return port_; }

 private:
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

MetricsServer::MetricsServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                            const TlsFiles& tls,
                                                            std::function<std::string()> text) {
  const std::size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos)
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  if (port < 0 || port > 65535) return Error{address + ": expected HOST:PORT"};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  auto implementation = std::make_unique<Implementation>(tls, std::move(text));
  if (Status listens = implementation->Listen(host, port); !listens)
    return Error{"cannot serve metrics on " + address + ": " + listens.error()};
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(implementation)));
}

int MetricsServer::port() const { return implementation_->port(); }

}  // namespace dynamix
