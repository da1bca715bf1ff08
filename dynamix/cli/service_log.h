// ServiceLog: what a service says on stderr, one line per event; JSON if asked.
//
// Whoever reads stderr may stop or leave: Add never waits, and lines that nobody takes are dropped
// and counted. What spdlog is told while this lives goes the same way. One at a time; thread-safe.
#pragma once

#include <memory>

#include "dynamix/host/output.h"
#include "dynamix/rpc/service.h"

namespace spdlog {
class logger;
}

namespace dynamix {

class ServiceLog {
 public:
  explicit ServiceLog(bool json);
  ~ServiceLog();
  ServiceLog(const ServiceLog&) = delete;
  ServiceLog& operator=(const ServiceLog&) = delete;

  void Add(const LogEvent& event);

 private:
  const bool json_;
  LogQueue queue_;
  std::shared_ptr<spdlog::logger> before_;  // shared: the library wants it so
};

}  // namespace dynamix
