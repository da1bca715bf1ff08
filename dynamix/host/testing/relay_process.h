// A path with an exact delay: two hosts whose interfaces end in one process that holds each packet
// for a fixed time. For kernels without netem. Tests only; fails as a failed expectation.
#pragma once

#include <chrono>
#include <memory>

#include "dynamix/host/helper_process.h"
#include "dynamix/host/testing/test_host.h"

namespace dynamix::test {

// Why there can be no relay here; nothing when there can.
std::optional<std::string> CannotRelay();

// Hosts 10.77.0.1 and 10.77.0.2; every packet takes `one_way`.
class DelayedHosts {
 public:
  explicit DelayedHosts(std::chrono::microseconds one_way);
  const NetworkNamespace& left() const { return left_; }
  const NetworkNamespace& right() const { return right_; }

 private:
  NetworkNamespace left_, right_;
  std::unique_ptr<HelperProcess> relay_;
};

}  // namespace dynamix::test
