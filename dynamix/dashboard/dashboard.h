// Dashboard: jobs as they run, in a browser. Read-only.
//
//   GET /           the page
//   GET /jobs       the jobs, as JSON
//   GET /points     ?job=NAME: its points (page/points.h) so far, as a JSON array
//   GET /events     ?job=NAME: its points as server-sent events, from the first or
//                   from the one after Last-Event-ID
//
// Rounds go in as lines of rounds.jsonl, and are kept, up to a bound, for readers to come: who adds
// one never waits for a reader. On loopback everybody on this machine may look; elsewhere TLS and a
// token are required. The page's content-security policy allows the server itself and nothing else;
// a request in another host's name is refused. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/page/page.h"
#include "dynamix/record/run_config.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

struct DashboardOptions {
  std::string address = "127.0.0.1:7041";  // HOST:PORT; port 0: a free one
  TlsFiles tls;                            // used and needed beyond loopback
  std::string token;                       // needed beyond loopback; /?token=... shows it once
  FindModelFunction find_model;            // explains decisions; may be empty
};

class Dashboard {
 public:
  // Throws InputError for an address beyond loopback without TLS and token. An Error says why the
  // address cannot be used.
  static Result<std::unique_ptr<Dashboard>> Start(DashboardOptions options);
  ~Dashboard();

  int port() const;
  // As a person would type it.
  std::string url() const;

  // What is known of a job; before its first round, or never.
  void SetConfig(const std::string& job, const RunConfig& config);
  // An earlier run of the job to compare it with: its rounds.
  void SetGhost(const std::string& job, const std::vector<RecordedRound>& rounds);
  // A line of rounds.jsonl. One that cannot be read is left out.
  void AddRound(const std::string& job, const nlohmann::json& line);

 private:
  class Implementation;
  explicit Dashboard(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
