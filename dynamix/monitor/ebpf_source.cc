// The user side of the eBPF source: load, attach, map the totals, read, and let everything go with
// the object. The programs and their invariant are in tcp_monitor.bpf.c.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "dynamix/host/cgroup.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/text_file.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/tcp_monitor_bpf.h"
#include "dynamix/monitor/tcp_monitor_program.skel.h"

namespace dynamix {
namespace {

struct Destroy {
  void operator()(tcp_monitor_bpf* skeleton) const { tcp_monitor_bpf::destroy(skeleton); }
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Skeleton = std::unique_ptr<tcp_monitor_bpf, Destroy>;
using Link = std::unique_ptr<bpf_link, Destroy>;

// Runs an iterator program once over everything it iterates.
Status Run(const Link& iterator) {
  const FileDescriptor run(bpf_iter_create(bpf_link__fd(iterator.get())));
  if (!run.valid()) return SystemError("eBPF iterator", errno);
  char nothing[64];
  ssize_t got = 0;
  while ((got = read(run.get(), nothing, sizeof nothing)) > 0 || (got < 0 && errno == EAGAIN)) {
  }
  if (got < 0) return SystemError("eBPF iterator", errno);
  return Nothing{};
}

class EbpfSource final : public NetworkSource {
 public:
  EbpfSource(Skeleton skeleton, Link on_event, Link refresh)
      : skeleton_(std::move(skeleton)),
        on_event_(std::move(on_event)),
        refresh_(std::move(refresh)) {}

  NetworkTier tier() const override { return NetworkTier::kEbpf; }

  Result<NetworkWindow> ReadWindow() override {
    // Without the refresh (older kernels ask for a capability that was dropped) open sockets lag by
    // a round trip, as if the iterator had not loaded.
    if (refresh_ && !Run(refresh_).ok()) refresh_.reset();
    return Window(std::exchange(last_, Totals()), last_);
  }

 private:
  // Each counter is read whole; counters of one event may fall into neighbouring windows.
  JobTotals Totals() {
    JobTotals& shared = skeleton_->bss->totals;
    const auto load = [](const unsigned long long& counter) {
      return __atomic_load_n(&counter, __ATOMIC_RELAXED);
    };
    JobTotals totals{};
    totals.bytes_acked = load(shared.bytes_acked);
    totals.bytes_received = load(shared.bytes_received);
    totals.segments_sent = load(shared.segments_sent);
    totals.segments_retransmitted = load(shared.segments_retransmitted);
    totals.timeouts = load(shared.timeouts);
    totals.sockets_opened = load(shared.sockets_opened);
    totals.sockets_closed = load(shared.sockets_closed);
    totals.sockets_seen = load(shared.sockets_seen);
    totals.adopted_seen = load(shared.adopted_seen);
    totals.bytes_times_rtt_us = load(shared.bytes_times_rtt_us);
    totals.bytes_times_minimum_rtt_us = load(shared.bytes_times_minimum_rtt_us);
    totals.bytes_times_window = load(shared.bytes_times_window);
    totals.rated_bytes = load(shared.rated_bytes);
    totals.rated_ns = load(shared.rated_ns);
    return totals;
  }

  NetworkWindow Window(const JobTotals& before, const JobTotals& now) const {
    const auto grown = [&](unsigned long long JobTotals::*counter) {
      return static_cast<double>(now.*counter - before.*counter);
    };
    NetworkWindow window;
    window.bytes_sent = grown(&JobTotals::bytes_acked);
    window.bytes_received = grown(&JobTotals::bytes_received);
    window.segments_sent = grown(&JobTotals::segments_sent);
    window.segments_retransmitted = grown(&JobTotals::segments_retransmitted);
    // The kernel tells of timers only to programs that were there when a socket was opened.
    if (grown(&JobTotals::adopted_seen) == 0) window.timeouts = grown(&JobTotals::timeouts);
    if (window.bytes_sent > 0) {
      window.smoothed_rtt_us = grown(&JobTotals::bytes_times_rtt_us) / window.bytes_sent;
      window.minimum_rtt_us = grown(&JobTotals::bytes_times_minimum_rtt_us) / window.bytes_sent;
      window.congestion_window = grown(&JobTotals::bytes_times_window) / window.bytes_sent;
    }
    const double rated_ns = grown(&JobTotals::rated_ns);
    if (rated_ns > 0) window.delivery_mbps = grown(&JobTotals::rated_bytes) / rated_ns * 8e3;
    window.open_sockets = refresh_ ? grown(&JobTotals::sockets_seen)
                                   : static_cast<double>(now.sockets_opened - now.sockets_closed);
    return window;
  }

  // Members go in reverse order: the links before the programs they hold.
  Skeleton skeleton_;
  Link on_event_, refresh_;
  JobTotals last_{};
};

Skeleton Load(bool with_iterators, int* error_number) {
  Skeleton skeleton(tcp_monitor_bpf::open());
  if (!skeleton) {
    *error_number = errno;
    return nullptr;
  }
  bpf_program__set_autoload(skeleton->progs.refresh, with_iterators);
  bpf_program__set_autoload(skeleton->progs.adopt, with_iterators);
  *error_number = -tcp_monitor_bpf::load(skeleton.get());
  return *error_number == 0 ? std::move(skeleton) : nullptr;
}

Link AttachIterator(const bpf_program* program, int map_file) {
  bpf_iter_link_info info{};
  bpf_iter_attach_opts options{};
  options.sz = sizeof options;
  if (map_file >= 0) {
    info.map.map_fd = static_cast<__u32>(map_file);
    options.link_info = &info;
    options.link_info_len = sizeof info;
  }
  return Link(bpf_program__attach_iter(program, &options));
}

Status Adopt(const tcp_monitor_bpf& skeleton, const std::vector<int>& processes) {
  for (const int pid : processes) {
    const auto process = static_cast<__u32>(pid);
    bpf_map__update_elem(skeleton.maps.adopted_processes, &process, sizeof process, &process,
                         sizeof process, BPF_ANY);
  }
  const Link iterator = AttachIterator(skeleton.progs.adopt, -1);
  if (!iterator) return SystemError("eBPF iterator", errno);
  return Run(iterator);
}

}  // namespace

OpenedSource OpenEbpfSource(const std::string& cgroup, std::string* note) {
  note->clear();
  const FileDescriptor folder(open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return SystemError(cgroup, errno);
  // libbpf writes what the verifier refuses to the error output of the job: our Error says it.
  libbpf_set_print(nullptr);
  int error_number = 0;
  bool exact = true;
  Skeleton skeleton = Load(true, &error_number);
  if (!skeleton) {
    exact = false;
    skeleton = Load(false, &error_number);
  }
  if (!skeleton) return SystemError("loading the eBPF program", error_number);
  Link on_event(bpf_program__attach_cgroup(skeleton->progs.on_event, folder.get()));
  if (!on_event) return SystemError("attaching eBPF to " + cgroup, errno);
  Link refresh;
  if (exact) refresh = AttachIterator(skeleton->progs.refresh, bpf_map__fd(skeleton->maps.marks));
  const std::vector<int> processes = ProcessesIn(cgroup);
  if (exact && !processes.empty()) exact = Adopt(*skeleton, processes).ok();
  if (!refresh || !exact)
    *note =
        "eBPF iterators are refused (CAP_PERFMON, kernel BTF): open sockets lag by a round "
        "trip, and sockets opened before the monitor are not seen";
  return std::unique_ptr<NetworkSource>(
      std::make_unique<EbpfSource>(std::move(skeleton), std::move(on_event), std::move(refresh)));
}

}  // namespace dynamix
