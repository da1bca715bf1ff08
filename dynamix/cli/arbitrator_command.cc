#include "dynamix/cli/arbitrator_command.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "dynamix/cli/advisor_flags.h"
#include "dynamix/cli/dashboard_flags.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/epoch_file.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/service_log.h"
#include "dynamix/core/input_error.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/ppo/policy_file.h"
#include "dynamix/ppo/tensor_file.h"
#include "dynamix/record/recorded_curve.h"
#include "dynamix/record/round_log.h"
#include "dynamix/record/run_folder.h"
#include "dynamix/rpc/address.h"
#include "dynamix/rpc/admin.h"
#include "dynamix/rpc/metrics.h"
#include "dynamix/rpc/service.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

struct ArbitratorFlags {
  std::string address = "127.0.0.1:7040";
  std::string policy = "default";
  std::string run;        // folder of records and checkpoints; empty: nothing is kept
  std::string reference;  // rounds.jsonl of an earlier run of the same job
  std::string swap;
  std::string metrics;  // HOST:PORT; empty: none
  bool reload = false, learn = false, json = false, no_guard = false, reflection = false;
  GateOptions gate;
  GuardOptions guard;
  OnlineLearningOptions learning;
  int valid_windows = 3, max_jobs = 64, max_connections = 8192;
  int seed = 1;
  TlsFlags tls;
  std::string tls_name;
  DashboardFlags dashboard;
};

ArbitratorOptions JobOptionsFor(const ArbitratorFlags& flags, ServiceLog& log,
                                const std::string& job, int size) {
  ArbitratorOptions options;
  options.guard = flags.guard;
  options.guard.on = !flags.no_guard;
  options.seed = flags.seed;
  if (!flags.reference.empty()) options.curve = ReadRecordedCurve(flags.reference);
  if (!flags.learn) return options;
  Result<PolicyModel> model =
      LoadPolicy(FindData("policy", flags.policy, "policies", ".safetensors"));
  if (!model) throw InputError(flags.policy + ": " + model.error());
  OnlineLearningOptions learning = flags.learning;
  learning.seed = flags.seed;
  if (!flags.run.empty()) learning.folder = (fs::path(flags.run) / job / "learner").string();
  options.learner = std::make_unique<OnlineLearner>(model.value(), size, learning);
  if (!options.learner->note().empty())
    log.Add({.event = "learner_restored", .job = job, .detail = options.learner->note()});
  return options;
}

// Who watches a serving arbitrator; null: not asked for.
struct Watchers {
  std::unique_ptr<Metrics> metrics;
  ShownFolder
      shown;  // the records, also those of an arbitrator before; without: rounds as they come
};

// `log` and `watchers` are borrowed: the service that has the options ends before them.
ServiceOptions MakeServiceOptions(const ArbitratorFlags& flags, ServiceLog& log,
                                  const Watchers& watchers) {
  ServiceOptions options;
  options.address = flags.address;
  options.tls = ReadTls(flags.tls);
  options.token = ReadToken(flags.tls);
  options.gate = flags.gate;
  options.valid_windows = flags.valid_windows;
  options.max_jobs = flags.max_jobs;
  options.reflection = flags.reflection;
  options.max_connections = flags.max_connections;
  options.log = [&log](const LogEvent& event) { log.Add(event); };
  options.job_options = [flags, &log](const std::string& job, int size) {
    return JobOptionsFor(flags, log, job, size);
  };
  options.find_policy = [flags](const std::string& name) {
    return name.empty() ? FindPolicy(flags.policy) : FindNamedPolicy(name);
  };
  // Shared only because a std::function must be copyable.
  const auto rounds = flags.run.empty() ? nullptr : std::make_shared<RoundLog>(flags.run);
  Dashboard* const dashboard = flags.run.empty() ? watchers.shown.dashboard() : nullptr;
  options.on_round = [rounds, dashboard, &watchers](const RoundRecord& record) {
    if (watchers.metrics != nullptr) watchers.metrics->Add(record);
    if (dashboard != nullptr) dashboard->AddRound(record.job, RoundLogJson(record));
    if (rounds != nullptr) rounds->Add(record);
  };
  return options;
}

// A connection is a file here, and the usual limit of 1,024 is soon reached.
void AllowManyConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void Announce(const ArbitratorFlags& flags, const Service& service, std::uint64_t epoch,
              const Watchers& watchers) {
  const Dashboard* const dashboard = watchers.shown.dashboard();
  const std::string host = flags.address.substr(0, flags.address.rfind(':'));
  const std::string address = flags.address.starts_with("unix:")
                                  ? flags.address
                                  : host + ":" + std::to_string(service.port());
  if (flags.json)
    std::printf("%s\n",
                nlohmann::json{{"address", address},
                               {"port", service.port()},
                               {"epoch", epoch},
                               {"metrics_port", watchers.metrics ? watchers.metrics->port() : 0},
                               {"dashboard_port", dashboard != nullptr ? dashboard->port() : 0},
                               {"policy", flags.policy},
                               {"learn", flags.learn}}
                    .dump()
                    .c_str());
  else
    std::printf("serving %s on %s (epoch %llu)%s\n", flags.policy.c_str(), address.c_str(),
                static_cast<unsigned long long>(epoch), flags.learn ? ", learning" : "");
  std::fflush(stdout);
}

std::unique_ptr<Metrics> StartMetrics(const ArbitratorFlags& flags) {
  if (flags.metrics.empty()) return nullptr;
  Result<std::unique_ptr<Metrics>> started = Metrics::Start(flags.metrics, ReadTls(flags.tls));
  if (!started) throw std::runtime_error(started.error());
  return std::move(started).value();
}

// SIGHUP: policy and certificates are read again. Whatever is wrong with them, those before stay.
void Reload(const ArbitratorFlags& flags, Service& service, Metrics* metrics, ServiceLog& log) {
  const auto keep = [&log](const char* event, const std::string& why) {
    log.Add({LogEvent::Level::kWarning, event, "", -1, why});
  };
  try {
    service.SetPolicy(FindPolicy(flags.policy));
  } catch (const std::exception& error) {
    keep("policy_kept", error.what());
  }
  if (flags.tls.authority.empty()) return;
  try {
    const TlsFiles tls = ReadTls(flags.tls);
    if (const Status loaded = service.SetTls(tls); !loaded)
      return keep("certificates_kept", loaded.error());
    if (metrics == nullptr) return;
    if (const Status loaded = metrics->SetTls(tls); !loaded)
      keep("certificates_kept", "metrics: " + loaded.error());
  } catch (const std::exception& error) {
    keep("certificates_kept", error.what());
  }
}

void Serve(const ArbitratorFlags& flags) {
  if (flags.learn && IsRule(flags.policy))
    throw InputError::OutOfRange("--policy", flags.policy, "a policy file: rules do not learn");
  if (!flags.address.starts_with("unix:")) RequireHostPort("--listen", flags.address);
  if (!flags.metrics.empty()) RequireHostPort("--metrics", flags.metrics);
  flags.guard.Validate();
  if (!flags.run.empty()) RequireRunFolder("--run", flags.run, {"epoch"});
  // Whoever reads the output may leave; the jobs go on.
  std::signal(SIGPIPE, SIG_IGN);
  ServiceLog log(flags.json);
  SendTransportLogTo([](const std::string& text) { spdlog::warn("transport: {}", text); });
  PolicySpec policy = FindPolicy(flags.policy);
  // What every job would be refused for is better known now.
  (void)Arbitrator(policy, JobOptionsFor(flags, log, "try", 1));
  const Watchers watchers{StartMetrics(flags),
                          ShownFolder(flags.dashboard, flags.tls, flags.run, flags.json)};
  Metrics* const metrics = watchers.metrics.get();
  ServiceOptions options = MakeServiceOptions(flags, log, watchers);
  options.Validate();
  options.epoch = NextEpoch(flags.run, std::chrono::system_clock::now());
  AllowManyConnections();
  const InterruptFlag interrupted;
  ReloadFlag reload;
  Result<std::unique_ptr<Service>> started = Service::Start(options, policy);
  if (!started) throw std::runtime_error(started.error());
  Service& service = *started.value();
  Announce(flags, service, options.epoch, watchers);
  while (!interrupted) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (metrics != nullptr) metrics->Set(service.counts());
    if (reload.Take()) Reload(flags, service, metrics, log);
  }
  const ServiceCounts counts = service.counts();
  log.Add({.event = "stopping",
           .detail = std::to_string(counts.reports) + " reports, " + std::to_string(counts.rounds) +
                     " rounds"});
}

void Swap(const ArbitratorFlags& flags) {
  const AdminOptions admin{flags.address, ReadTls(flags.tls), flags.tls_name, ReadToken(flags.tls)};
  const Result<std::string> swapped = SwapPolicy(admin, flags.reload ? "" : flags.swap);
  if (!swapped) throw std::runtime_error(swapped.error());
  if (flags.json)
    std::printf("%s\n", nlohmann::json{{"policy", swapped.value()}}.dump().c_str());
  else
    std::printf("%s serves %s\n", flags.address.c_str(), swapped.value().c_str());
}

void AddServingFlags(CLI::App& command, ArbitratorFlags& flags) {
  const auto add = [&command](const char* name, auto& field, const char* text) {
    return command.add_option(name, field, text)->capture_default_str();
  };
  add("--listen", flags.address, "HOST:PORT (port 0: a free one); beyond loopback TLS is required");
  add("--policy", flags.policy, "a rule (docs/rules.md), a shipped policy or a policy file");
  command.add_option("--run", flags.run, "folder of rounds.jsonl per job, epoch and checkpoints");
  add("--lease", flags.gate.lease_s, "seconds of silence until a worker counts as dead")
      ->check(CLI::Range(0.1, 3600.0));
  add("--round-deadline", flags.gate.round_deadline_s, "seconds a round waits for late workers")
      ->check(CLI::Range(0.001, 600.0));
  add("--valid-windows", flags.valid_windows, "windows until advice is too old to follow")
      ->check(CLI::Range(1, 1000));
  add("--max-jobs", flags.max_jobs, "jobs at once")->check(CLI::Range(1, 100000));
  add("--max-connections", flags.max_connections, "at once; fewer if files are limited (ulimit -n)")
      ->check(CLI::Range(1, 1000000));
  add("--seed", flags.seed, "of everything random")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command.add_option("--metrics", flags.metrics,
                     "HOST:PORT of Prometheus metrics; beyond loopback with TLS; default: none");
  command.add_flag("--reflection", flags.reflection, "let tools list the methods");
}

void AddGuardFlags(CLI::App& command, ArbitratorFlags& flags) {
  const auto add = [&command](const char* name, auto& field, const char* text) {
    return command.add_option(name, field, text)->capture_default_str();
  };
  command.add_flag("--no-guard", flags.no_guard, "never fall back");
  add("--guard-rounds", flags.guard.rounds, "rounds of advice a verdict needs")
      ->check(CLI::Range(1, 1000));
  add("--guard-tolerance", flags.guard.tolerance,
      "share of the speed at the start batches that must be kept")
      ->check(CLI::Range(1e-6, 1.0));
  add("--guard-hold", flags.guard.hold, "rounds of the first fallback")
      ->check(CLI::Range(1, 100000));
  command.add_flag("--learn", flags.learn, "learn from the jobs while they run");
  command
      .add_option_function<int>(
          "--learn-steps",
          [&flags](int n) { flags.learning.team_ppo.steps = flags.learning.local_ppo.steps = n; },
          "rounds between updates")
      ->default_str("32");
  command.add_option("--reference", flags.reference,
                     "rounds.jsonl of an earlier run of the job: progress is read from its curve");
}

}  // namespace

void AddArbitratorCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<ArbitratorFlags>();
  CLI::App* command = app.add_subcommand("arbitrator", "Serve advice to live jobs over gRPC");
  AddServingFlags(*command, *flags);
  AddGuardFlags(*command, *flags);
  AddDashboardFlags(*command, flags->dashboard);
  AddTlsFlags(*command, flags->tls);
  command->add_option("--tls-name", flags->tls_name, "--swap: name in its certificate");
  const CLI::Option* swap = command->add_option(
      "--swap", flags->swap, "ask the arbitrator at --listen to serve another policy, by name");
  command->add_flag("--reload", flags->reload,
                    "ask the arbitrator at --listen to read its policy file again (SIGHUP does, "
                    "and certificates)");
  command->add_flag("--json", flags->json, "JSON on stdout and as log lines on stderr");
  command->footer(
      "Examples:\n"
      "  dynamix arbitrator --policy goodput --run runs/arbitrator --dashboard 127.0.0.1:7041\n"
      "  dynamix arbitrator --learn --run runs/arbitrator --reference runs/old/job/rounds.jsonl\n"
      "  dynamix arbitrator --swap balanced --listen 127.0.0.1:7040");
  command->callback([flags, swap] {
    if (swap->count() > 0 && flags->swap.empty())
      throw InputError::OutOfRange("--swap", "''", "the name of a policy");
    if (flags->reload || !flags->swap.empty()) return Swap(*flags);
    Serve(*flags);
  });
}

}  // namespace dynamix
