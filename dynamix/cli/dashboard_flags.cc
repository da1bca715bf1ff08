#include "dynamix/cli/dashboard_flags.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>

#include "dynamix/cli/find_policy.h"
#include "dynamix/rpc/address.h"

namespace dynamix {
namespace {

// Threads started while this lives do not take the process's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

void AddDashboardFlags(CLI::App& command, DashboardFlags& flags) {
  command.add_option("--dashboard", flags.address,
                     "HOST:PORT of a live page of the job (port 0: a free one); beyond loopback "
                     "with TLS and a token; default: none");
  command.add_option("--dashboard-token-file", flags.token,
                     "file with the token that viewers show, beyond loopback");
}

std::unique_ptr<Dashboard> StartDashboard(const DashboardFlags& flags, const TlsFlags& tls,
                                          bool quiet) {
  if (flags.address.empty()) return nullptr;
  RequireHostPort("--dashboard", flags.address);
  const SignalsBlocked blocked;
  Result<std::unique_ptr<Dashboard>> started =
      Dashboard::Start({.address = flags.address,
                        .tls = ReadTls(tls),
                        .token = ReadToken({.token = flags.token}),
                        .find_model = FindModel});
  if (!started) throw std::runtime_error("dashboard: " + started.error());
  if (!quiet) std::fprintf(stderr, "dashboard: %s\n", started.value()->url().c_str());
  return std::move(started).value();
}

ShownFolder::ShownFolder(const DashboardFlags& flags, const TlsFlags& tls,
                         const std::filesystem::path& folder, bool quiet)
    : dashboard_(StartDashboard(flags, tls, quiet)) {
  const SignalsBlocked blocked;
  if (dashboard_ != nullptr && !folder.empty())
    watch_ = std::make_unique<FolderWatch>(*dashboard_, folder);
}

}  // namespace dynamix
