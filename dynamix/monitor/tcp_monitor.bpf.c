// The kernel side of the eBPF source. Three programs, one map of marks, one block of totals:
//
//   on_event  sock_ops on the job's cgroup: once per round trip, retransmission, timeout and change
//             of state of each socket, adds what the socket has done since its mark to the totals
//   refresh   iterator over the marks: the same for every open socket, now; run before each read,
//             so that a socket that only receives (no round trips to sample) is up to date as well
//   adopt     iterator over open files: marks sockets that were open before the program came
//
// Invariant: every byte is added once. A mark moves by compare-and-swap, and whoever moves it adds
// the difference, so on_event and refresh may run at once on two CPUs. Marks live in socket
// storage: the kernel frees them with the socket, and on_event has added the rest when it closes.
//
// on_event uses only the stable sock_ops context. The iterators read struct tcp_sock by BTF and are
// optional: where they do not load, totals of open sockets lag by one round trip.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "tcp_monitor_bpf.h"

#define BY_BTF __attribute__((preserve_access_index))
#define POINTER(type, name) \
  union {                   \
    type* name;             \
    __u64 name##_word;      \
  }

// Only the fields read here; the loader finds their offsets in the running kernel's BTF.
struct minmax_sample {
  __u32 v;
} BY_BTF;
struct minmax {
  struct minmax_sample s[3];
} BY_BTF;
struct sock_common {
  unsigned char skc_state;
} BY_BTF;
struct sock {
  struct sock_common __sk_common;
} BY_BTF;
struct file;
struct socket {
  struct sock* sk;
} BY_BTF;
struct tcp_sock {
  __u64 bytes_acked, bytes_received;
  __u32 data_segs_out, total_retrans, srtt_us, snd_cwnd, mss_cache;
  __u32 rate_delivered, rate_interval_us;
  struct minmax rtt_min;
} BY_BTF;
struct task_struct {
  int tgid;
} BY_BTF;
struct bpf_iter__bpf_sk_storage_map {
  POINTER(void, meta);
  POINTER(void, map);
  POINTER(struct sock, sk);
  POINTER(struct SocketMark, value);
} BY_BTF;
struct bpf_iter__task_file {
  POINTER(void, meta);
  POINTER(struct task_struct, task);
  __u32 fd __attribute__((aligned(8)));
  POINTER(struct file, file);
} BY_BTF;

struct {
  __uint(type, BPF_MAP_TYPE_SK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct SocketMark);
} marks SEC(".maps");

// Processes whose open sockets are adopted; filled by the user side before it runs `adopt`.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u32);
} adopted_processes SEC(".maps");

struct JobTotals totals;

// What a socket says about itself, from either kind of program.
struct Reading {
  __u64 bytes_acked, bytes_received;
  __u32 segments_sent, segments_retransmitted;
  __u32 smoothed_rtt_us, minimum_rtt_us, window, segment_bytes;
  __u32 rate_delivered, rate_interval_us;
};

// Moves a mark forward and adds the distance to `total`; returns the distance.
static __always_inline __u64 Advance(unsigned long long* mark, __u64 now,
                                     unsigned long long* total) {
  const __u64 before = *(volatile __u64*)mark;
  if (now <= before || __sync_val_compare_and_swap(mark, before, now) != before) return 0;
  __sync_fetch_and_add(total, now - before);
  return now - before;
}

// The same for a counter that the kernel keeps in 32 bits and that wraps: the mark goes on in 64.
static __always_inline void AdvanceWrapping(unsigned long long* mark, __u32 now,
                                            unsigned long long* total) {
  const __u64 before = *(volatile __u64*)mark;
  const __s32 step = (__s32)(now - (__u32)before);
  if (step > 0) Advance(mark, before + step, total);
}

static __always_inline void Add(struct SocketMark* mark, const struct Reading* now) {
  const __u64 acked = Advance(&mark->bytes_acked, now->bytes_acked, &totals.bytes_acked);
  Advance(&mark->bytes_received, now->bytes_received, &totals.bytes_received);
  AdvanceWrapping(&mark->segments_sent, now->segments_sent, &totals.segments_sent);
  AdvanceWrapping(&mark->segments_retransmitted, now->segments_retransmitted,
                  &totals.segments_retransmitted);
  if (acked == 0) return;
  const __u32 least = now->minimum_rtt_us;
  const int measured = least != 0 && least != ~0U;
  __sync_fetch_and_add(&totals.bytes_times_rtt_us, acked * now->smoothed_rtt_us);
  __sync_fetch_and_add(&totals.bytes_times_minimum_rtt_us,
                       acked * (measured ? least : now->smoothed_rtt_us));
  __sync_fetch_and_add(&totals.bytes_times_window, acked * now->window);
  const __u64 delivered = (__u64)now->rate_delivered * now->segment_bytes;
  if (delivered == 0 || now->rate_interval_us == 0) return;
  __sync_fetch_and_add(&totals.rated_bytes, acked);
  __sync_fetch_and_add(&totals.rated_ns, acked * now->rate_interval_us * 1000 / delivered);
}

SEC("sockops")
int on_event(struct bpf_sock_ops* event) {
  const int op = event->op;
  const int opened =
      op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
  const int wanted = opened || op == BPF_SOCK_OPS_RTT_CB || op == BPF_SOCK_OPS_RETRANS_CB ||
                     op == BPF_SOCK_OPS_RTO_CB || op == BPF_SOCK_OPS_STATE_CB;
  struct bpf_sock* socket = event->sk;
  if (!wanted || !socket) return 1;
  struct SocketMark* mark =
      bpf_sk_storage_get(&marks, socket, 0, opened ? BPF_SK_STORAGE_GET_F_CREATE : 0);
  if (!mark) return 1;
  if (opened) {
    bpf_sock_ops_cb_flags_set(event, event->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG |
                                         BPF_SOCK_OPS_RETRANS_CB_FLAG |
                                         BPF_SOCK_OPS_RTO_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
    __sync_fetch_and_add(&totals.sockets_opened, 1);
  }
  if (op == BPF_SOCK_OPS_RTO_CB) __sync_fetch_and_add(&totals.timeouts, 1);
  if (op == BPF_SOCK_OPS_STATE_CB && event->args[1] == BPF_TCP_CLOSE)
    __sync_fetch_and_add(&totals.sockets_closed, 1);
  const struct Reading now = {
      .bytes_acked = event->bytes_acked,
      .bytes_received = event->bytes_received,
      .segments_sent = event->data_segs_out,
      .segments_retransmitted = event->total_retrans,
      .smoothed_rtt_us = event->srtt_us >> 3,
      .minimum_rtt_us = event->rtt_min,
      .window = event->snd_cwnd,
      .segment_bytes = event->mss_cache,
      .rate_delivered = event->rate_delivered,
      .rate_interval_us = event->rate_interval_us,
  };
  Add(mark, &now);
  return 1;
}

static __always_inline void Read(const struct tcp_sock* tcp, struct Reading* now) {
  now->bytes_acked = tcp->bytes_acked;
  now->bytes_received = tcp->bytes_received;
  now->segments_sent = tcp->data_segs_out;
  now->segments_retransmitted = tcp->total_retrans;
  now->smoothed_rtt_us = tcp->srtt_us >> 3;
  now->minimum_rtt_us = tcp->rtt_min.s[0].v;
  now->window = tcp->snd_cwnd;
  now->segment_bytes = tcp->mss_cache;
  now->rate_delivered = tcp->rate_delivered;
  now->rate_interval_us = tcp->rate_interval_us;
}

SEC("iter/bpf_sk_storage_map")
int refresh(struct bpf_iter__bpf_sk_storage_map* context) {
  struct sock* socket = context->sk;
  struct SocketMark* mark = context->value;
  if (!socket || !mark) return 0;
  const struct tcp_sock* tcp = (const struct tcp_sock*)bpf_skc_to_tcp_sock(socket);
  if (!tcp) return 0;
  struct Reading now;
  Read(tcp, &now);
  Add(mark, &now);
  const unsigned char state = socket->__sk_common.skc_state;
  if (state == BPF_TCP_LISTEN || state == BPF_TCP_CLOSE) return 0;
  __sync_fetch_and_add(&totals.sockets_seen, 1);
  __sync_fetch_and_add(&totals.adopted_seen, mark->adopted);
  return 0;
}

SEC("iter/task_file")
int adopt(struct bpf_iter__task_file* context) {
  struct task_struct* task = context->task;
  struct file* file = context->file;
  if (!task || !file) return 0;
  const __u32 process = task->tgid;
  if (!bpf_map_lookup_elem(&adopted_processes, &process)) return 0;
  struct socket* descriptor = (struct socket*)bpf_sock_from_file(file);
  if (!descriptor) return 0;
  struct sock* socket = descriptor->sk;
  if (!socket) return 0;
  struct tcp_sock* tcp = (struct tcp_sock*)bpf_skc_to_tcp_sock(socket);
  if (!tcp || bpf_sk_storage_get(&marks, tcp, 0, 0)) return 0;
  struct Reading now;
  Read(tcp, &now);
  const struct SocketMark start = {now.bytes_acked, now.bytes_received, now.segments_sent,
                                   now.segments_retransmitted, 1};
  bpf_sk_storage_get(&marks, tcp, (void*)&start, BPF_SK_STORAGE_GET_F_CREATE);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
