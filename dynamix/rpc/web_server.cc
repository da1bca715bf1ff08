#include "dynamix/rpc/web_server.h"

#include <httplib.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "dynamix/rpc/address.h"
#include "dynamix/rpc/pem.h"

namespace dynamix {
namespace {

constexpr int kTimeoutS = 2;
constexpr int kBacklog = 512;

bool SetUpTls(SSL_CTX& context, const TlsFiles& tls, bool ask_certificate) {
  const Certificate own = ReadCertificate(tls.certificate);
  const Certificate authority = ReadCertificate(tls.authority);
  const Key key = ReadKey(tls.key);
  if (!own || !authority || !key) return false;
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  if (ask_certificate)
    SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return SSL_CTX_use_certificate(&context, own.get()) == 1 &&
         SSL_CTX_use_PrivateKey(&context, key.get()) == 1 &&
         X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) == 1;
}

WebRequest Convert(const httplib::Request& request, bool secure) {
  WebRequest converted;
  for (const auto& [name, value] : request.params) converted.query[name] = value;
  converted.host = request.get_header_value("Host");
  converted.cookie = request.get_header_value("Cookie");
  converted.last_event_id = request.get_header_value("Last-Event-ID");
  if (!secure) return converted;
  const Certificate peer(SSL_get1_peer_certificate(request.ssl), X509_free);
  if (peer != nullptr) converted.peer_names = UrisOf(*peer);
  return converted;
}

void Send(WebAnswer answer, httplib::Response& response) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (!answer.stream) return response.set_content(answer.body, answer.type);
  response.set_chunked_content_provider(
      answer.type, [stream = std::move(answer.stream)](std::size_t, httplib::DataSink& sink) {
        return stream([&](std::string_view text) { return sink.write(text.data(), text.size()); });
      });
}

}  // namespace

class WebServer::Implementation {
 public:
  Implementation(const WebServerOptions& options, const std::map<std::string, WebPage>& pages) {
    const bool secure = !options.tls.empty();
    if (secure)
      server_ = std::make_unique<httplib::SSLServer>([&options](SSL_CTX& context) {
        return SetUpTls(context, options.tls, options.ask_certificate);
      });
    else
      server_ = std::make_unique<httplib::Server>();
    server_->set_read_timeout(kTimeoutS);
    server_->set_write_timeout(kTimeoutS);
    server_->set_keep_alive_timeout(kTimeoutS);
    server_->set_payload_max_length(1024);
    server_->new_task_queue = [threads = options.threads] {
      return new httplib::ThreadPool(threads);
    };
    // The library's own options would let another process share the port. Whoever connects and says
    // nothing stays with the kernel, and keeps no thread from those who ask.
    server_->set_socket_options([this](int socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      setsockopt(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kTimeoutS, sizeof kTimeoutS);
      socket_ = socket;
    });
    for (const auto& [path, page] : pages)
      server_->Get(path, [page = page, secure](const httplib::Request& request,
                                               httplib::Response& response) {
        Send(page(Convert(request, secure)), response);
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
    (void)::listen(socket_, kBacklog);  // the library's own is five
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    return Nothing{};
  }

  int port() const { return port_; }

 private:
  std::unique_ptr<httplib::Server> server_;
  int socket_ = -1;  // the library's
  int port_ = 0;
  std::thread thread_;
};

WebServer::WebServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

WebServer::~WebServer() = default;

Result<std::unique_ptr<WebServer>> WebServer::Start(const WebServerOptions& options,
                                                    std::map<std::string, WebPage> pages) {
  const std::string& address = options.address;
  const std::optional<HostPort> wanted = ParseHostPort(address);
  if (!wanted) return Error{address + ": expected " + std::string(kHostPortForm)};
  auto implementation = std::make_unique<Implementation>(options, pages);
  if (Status listens = implementation->Listen(wanted->host, wanted->port); !listens)
    return Error{"cannot serve on " + address + ": " + listens.error()};
  return std::unique_ptr<WebServer>(new WebServer(std::move(implementation)));
}

int WebServer::port() const { return implementation_->port(); }

}  // namespace dynamix
