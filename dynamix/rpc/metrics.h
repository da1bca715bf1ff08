// Metrics: what the arbitrator does, for Prometheus. Names, labels and units: docs/protocol.md.
//
// Serves http://ADDRESS/metrics from threads of its own. Thread-safe. The number of series is
// bounded: jobs not heard for long give way to new ones, ranks from 256 on have none of their own.
#pragma once

#include <memory>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/rpc/service.h"

namespace dynamix {

class Metrics {
 public:
  // HOST:PORT; port 0: a free one. An Error says that the address cannot be used.
  static Result<std::unique_ptr<Metrics>> Start(const std::string& address);
  ~Metrics();

  int port() const;
  void Add(const RoundRecord& record);
  void Set(const ServiceCounts& counts);

 private:
  class Implementation;
  explicit Metrics(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
