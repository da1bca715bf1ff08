// What an administrator asks of a running arbitrator.
#pragma once

#include <string>

#include "dynamix/core/result.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

struct AdminOptions {
  std::string address;
  TlsFiles tls;
  std::string tls_name, token;
  double timeout_s = 5;
};

// Swaps the policy of all jobs; empty: the served file is read again. Returns the policy in force.
Result<std::string> SwapPolicy(const AdminOptions& options, const std::string& policy);

}  // namespace dynamix
