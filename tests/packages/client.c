/* A worker in C whose arbitrator is not there: it keeps its batch. */
#include <dynamix.h>
#include <stdio.h>

int main(void) {
  dynamix_options options;
  char error[200] = "";
  dynamix_options_init(&options);
  options.addresses = "127.0.0.1:1";
  options.start_batch = 48;
  dynamix_worker* worker = dynamix_worker_start(&options, error, sizeof error);
  if (worker == NULL) return fprintf(stderr, "%s\n", error), 1;
  dynamix_iteration iteration;
  dynamix_iteration_init(&iteration);
  iteration.iteration_ms = 10;
  const int batch = dynamix_worker_end_iteration(worker, &iteration);
  dynamix_worker_stop(worker);
  printf("%d\n", batch);
  return batch == 48 ? 0 : 1;
}
