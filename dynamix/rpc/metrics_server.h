// MetricsServer: one page over HTTP, for whoever scrapes it.
//
// Several connections at once, each with a timeout, so that a silent one blocks nobody. With TLS the
// caller needs a certificate that may read metrics or administer. A private header of this room:
// only its .cc files include it. The text is asked for from threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

class MetricsServer {
 public:
  // HOST:PORT; port 0: a free one. Empty `tls`: plain HTTP.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                      const TlsFiles& tls,
                                                      std::function<std::string()> text);
  // Ends all connections.
  ~MetricsServer();

  int port() const;

 private:
  class Implementation;
  explicit MetricsServer(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
