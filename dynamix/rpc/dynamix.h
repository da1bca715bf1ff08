/* dynamix.h: batch sizes from a DYNAMIX arbitrator, for C and every language that can call C.
 *
 *   dynamix_options options;
 *   dynamix_options_init(&options);
 *   options.addresses = "127.0.0.1:7040";  options.rank = rank;  options.size = size;
 *   dynamix_worker* worker = dynamix_worker_start(&options, error, sizeof error);
 *   for (...) {
 *     ... one iteration of dynamix_worker_batch(worker) samples ...
 *     dynamix_worker_end_iteration(worker, &iteration);
 *   }
 *   dynamix_worker_stop(worker);
 *
 * Only dynamix_worker_start waits for the network; none throws or ends the process. Without an
 * arbitrator the batch stays. Ranks may switch in different iterations: weight each rank's gradient
 * by the samples it really used. One thread per worker. Structures start with their size, which the
 * *_init functions set, so that fields can be added at the end; nothing is ever removed
 * (DYNAMIX_ABI_VERSION). A program that links the C++ library dynamix::rpc uses that instead:
 * protobuf allows only one of the two. */
#ifndef DYNAMIX_H_
#define DYNAMIX_H_

#include <stddef.h>

#define DYNAMIX_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dynamix_worker dynamix_worker;

typedef struct dynamix_options {
  size_t struct_size;
  const char* addresses; /* "HOST:PORT[,HOST:PORT...]" */
  const char* job;       /* 1 to 128 letters, digits, '.', '_', '-'; default "job" */
  int rank, size;        /* default 0 of 1 */
  int start_batch;       /* samples of this rank in an iteration; default 32 */
  int min_batch;         /* default 8 */
  int max_batch;         /* default 1024 */
  int granularity;       /* batches are multiples of this; default 1 */
  int window_iterations; /* iterations between two reports; default 10 */
  double timeout_s;      /* how long advice is waited for, in the background; default 3 */
  /* What the job was configured with; NaN: unknown. */
  double base_learning_rate, base_batch, target_accuracy;
  int learning_rate_rule; /* 0 none, 1 linear, 2 sqrt, 3 adascale; default 0 */
  int schedule;           /* 0 constant, 1 cosine, 2 step, 3 warmup; default 0 */
  int adaptive;           /* 1: Adam and its like; default 0 */
  const char* token;      /* NULL: none */
  /* PEM texts for mTLS; all three or none. */
  const char *tls_authority, *tls_certificate, *tls_key;
  const char* tls_name; /* in the arbitrator's certificate; NULL: the address's host */
  double target_loss;   /* instead of target_accuracy; NaN: none */
  int monitor;          /* 1: measure network and host of this process (default); 0: not */
  int device;           /* with monitor: its GPU, as NVML counts; default -1, none */
  /* A number that all ranks of one training give, drawn by one of them: another training of the
   * same job name is then refused while this one lives. Default 0: none. */
  unsigned long long run;
  int clock; /* the schedule's: 0 samples, 1 steps of the learning rate's length; default 0 */
} dynamix_options;

/* One iteration as this rank saw it; NaN: not measured (the default of every field). */
typedef struct dynamix_iteration {
  size_t struct_size;
  double iteration_ms, compute_ms, wait_ms, communication_ms;
  double loss, accuracy, gradient_norm, noise_scale, learning_rate;
  double progress; /* part of the schedule that is over; by samples: seen over planned */
} dynamix_iteration;

typedef struct dynamix_counts {
  size_t struct_size;
  long long windows, advised, failed_calls;
  int breaker_open; /* it has stopped asking for a while */
  int fallback;     /* the arbitrator's guard is in force */
} dynamix_counts;

void dynamix_options_init(dynamix_options* options);
void dynamix_iteration_init(dynamix_iteration* iteration);

/* NULL when an option is out of range; `error` (may be NULL) then says which, with the value and
 * what is allowed. Asks the arbitrator where to begin, for a second at most. */
dynamix_worker* dynamix_worker_start(const dynamix_options* options, char* error,
                                     size_t error_size);
/* Samples of the next iteration. */
int dynamix_worker_batch(const dynamix_worker* worker);
/* Returns the same, after an iteration ended. */
int dynamix_worker_end_iteration(dynamix_worker* worker, const dynamix_iteration* iteration);
void dynamix_worker_get_counts(const dynamix_worker* worker, dynamix_counts* counts);
/* Takes at most 0.2 s. NULL is allowed. */
void dynamix_worker_stop(dynamix_worker* worker);

int dynamix_abi_version(void);

#ifdef __cplusplus
}
#endif

#endif /* DYNAMIX_H_ */
