// Metrics: what the arbitrator does, for Prometheus. Names, labels and units: docs/protocol.md.
//
// Serves http://ADDRESS/metrics from threads of its own, on loopback; on any other address https and
// only with certificates. Thread-safe. The number of series is bounded: the job not heard for
// longest gives way to a new one, ranks from 256 on have none of their own.
#pragma once

#include <memory>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/rpc/service.h"

namespace dynamix {

class Metrics {
 public:
  // HOST:PORT; port 0: a free one. `tls` is used unless the address is loopback, and needed then
  // (InputError). An Error says that the address cannot be used.
  static Result<std::unique_ptr<Metrics>> Start(const std::string& address,
                                                const TlsFiles& tls = {});
  ~Metrics();

  int port() const;
  // Serves with other certificates from now on. An Error says why not; those before stay in force.
  Status SetTls(const TlsFiles& tls);
  void Add(const RoundRecord& record);
  void Set(const ServiceCounts& counts);

 private:
  class Implementation;
  explicit Metrics(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
