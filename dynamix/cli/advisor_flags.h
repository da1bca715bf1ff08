// Flags that say how to reach an arbitrator, and how to prove who one is. Plain values.
#pragma once

#include <string>

#include "dynamix/rpc/remote_advisor.h"

namespace CLI {
class App;
}

namespace dynamix {

struct TlsFlags {
  std::string authority, certificate, key, token;  // paths
};

struct AdvisorFlags {
  std::string address;
  std::string job;
  TlsFlags tls;
  std::string tls_name;
  double timeout_s = 3;
};

void AddTlsFlags(CLI::App& command, TlsFlags& flags);
void AddAdvisorFlags(CLI::App& command, AdvisorFlags& flags);

// Throw InputError for a file that cannot be read. Rank, size and settings are the caller's.
TlsFiles ReadTls(const TlsFlags& flags);
std::string ReadToken(const TlsFlags& flags);
RemoteAdvisorOptions MakeAdvisorOptions(const AdvisorFlags& flags);

}  // namespace dynamix
