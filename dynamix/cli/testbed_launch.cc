#include "dynamix/cli/testbed_launch.h"

#include <cstdio>
#include <thread>

#include "dynamix/simulator/simulated_cluster.h"
#include "dynamix/testbed/testbed.h"

namespace dynamix {

int LaunchOnTestbed(const JobSpec& job, const std::string& testbed, bool quiet,
                    LaunchOptions& launch) {
  TestbedOptions options;
  options.nodes = ResolveNodes(job.scenario, job.workers);
  options.events = EventsOf(job);
  options.network = testbed != "plain";
  options.elastic = launch.elastic;
  if (testbed == "quota") options.quota_cpus = std::thread::hardware_concurrency();
  const Testbed nodes(options);
  for (const std::string& note : nodes.notes())
    if (!quiet) std::fprintf(stderr, "testbed: %s\n", note.c_str());
  launch.address = nodes.address();
  launch.environment.emplace_back("DYNAMIX_JOB_CLOCK", nodes.clock_path());
  if (!nodes.interface().empty())
    launch.environment.emplace_back("GLOO_SOCKET_IFNAME", nodes.interface());
  launch.enter = [&](int rank) { return nodes.Enter(rank); };
  if (launch.elastic) launch.away = [&](int rank) { return nodes.Away(rank); };
  return Launch(launch);
}

}  // namespace dynamix
