// A program in C++ over the rooms that gRPC, libtorch, libbpf and Gloo stand behind: nothing of theirs
// is named here, nor in the link line.
#include <cstdio>

#include "dynamix/monitor/monitor.h"
#include "dynamix/rpc/advised_worker.h"
#include "dynamix/training/worker_group.h"

int main() {
  auto group = dynamix::WorkerGroup::Connect({}, {});
  if (!group) return std::fprintf(stderr, "%s\n", group.error().c_str()), 1;
  dynamix::AdvisedWorkerOptions options{.start_batch = 48};
  options.advisor.addresses = "127.0.0.1:1";
  options.measure = dynamix::MakeMeasure({});
  dynamix::AdvisedWorker worker(options);
  const int batch = worker.EndIteration({.iteration_ms = 10});
  std::printf("%d of %d: %d\n", group.value()->rank(), group.value()->size(), batch);
  return batch == 48 ? 0 : 1;
}
