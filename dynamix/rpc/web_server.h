// WebServer: a few read-only pages over HTTP, for whoever scrapes or looks.
//
// Several connections at once, each with timeouts, so that a silent or slow one blocks nobody: what
// a reader does not take within seconds ends its connection. Pages are asked for from threads of the
// server's own. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

struct WebRequest {
  std::map<std::string, std::string> query;
  std::string host, cookie, last_event_id;  // headers; empty: not sent
  std::vector<std::string> peer_names;      // URIs of the caller's certificate
};

// Sends text; false when the reader is gone, or too slow.
using WebWrite = std::function<bool(std::string_view text)>;

struct WebAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::map<std::string, std::string> headers;
  // An answer without an end, instead of the body: called again and again until it returns false. It
  // returns within a second, also when there is nothing to send, so that the server can end.
  std::function<bool(const WebWrite& write)> stream;
};

using WebPage = std::function<WebAnswer(const WebRequest& request)>;

struct WebServerOptions {
  std::string address;          // HOST:PORT; port 0: a free one
  TlsFiles tls;                 // empty: plain HTTP
  bool ask_certificate = true;  // with TLS: of the caller
  int threads = 8;              // connections served at once
};

class WebServer {
 public:
  // `pages` by path. An Error says why the address cannot be used.
  static Result<std::unique_ptr<WebServer>> Start(const WebServerOptions& options,
                                                  std::map<std::string, WebPage> pages);
  // Ends all connections.
  ~WebServer();

  int port() const;

 private:
  class Implementation;
  explicit WebServer(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
