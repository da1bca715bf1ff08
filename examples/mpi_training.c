/* Training with a launcher and a collective that are not ours, made adaptive: MPI ranks, each with
 * the batch an arbitrator advises, gradients summed by MPI_Allreduce.
 *   dynamix arbitrator --policy goodput
 *   mpirun -n 4 mpi_training 127.0.0.1:7040 100000 2      2: ms an iteration takes at least
 * Linear regression on made-up data. The lines that matter are the ones that begin with dynamix_.
 */
#include <dynamix.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kFeatures = 32 };

static double Noise(unsigned long long index) { /* in [-1, 1), from the sample's number alone */
  index = (index + 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;
  index = (index ^ (index >> 29)) * 0x94D049BB133111EBull;
  return (double)(index >> 11) * 0x1p-52 - 1;
}

/* Adds the gradient of `count` samples from `first` on, and returns the sum of their losses. */
static double AddGradient(const double* weights, long long first, int count, double* gradient) {
  double loss = 0, x[kFeatures];
  for (long long i = first; i < first + count; ++i) {
    double wanted = 0.1 * Noise(~(unsigned long long)i), got = 0;
    for (int f = 0; f < kFeatures; ++f) {
      x[f] = Noise((unsigned long long)i * kFeatures + f);
      wanted += x[f] * (f % 5 - 2);
      got += x[f] * weights[f];
    }
    for (int f = 0; f < kFeatures; ++f) gradient[f] += (got - wanted) * x[f];
    loss += 0.5 * (got - wanted) * (got - wanted);
  }
  return loss;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long long planned = argc > 2 ? atoll(argv[2]) : 100000;
  const int least_us = argc > 3 ? 1000 * atoi(argv[3]) : 0; /* as if the model were larger */

  dynamix_options options;
  dynamix_options_init(&options);
  options.addresses = argc > 1 ? argv[1] : "127.0.0.1:7040";
  options.job = "mpi";
  options.rank = rank;
  options.size = size;
  options.start_batch = 16;
  options.window_iterations = 10;
  options.base_learning_rate = 0.05;
  char error[200] = "";
  dynamix_worker* worker = dynamix_worker_start(&options, error, sizeof error);
  if (worker == NULL) {
    fprintf(stderr, "mpi_training: %s\n", error);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  double weights[kFeatures] = {0}, sums[kFeatures + 2];
  long long seen = 0;
  while (seen < planned) {
    const double start = MPI_Wtime();
    /* Who takes how many samples of the stream is agreed anew in every iteration. */
    int batch = dynamix_worker_batch(worker), before = 0, all = 0;
    MPI_Exscan(&batch, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) before = 0;
    for (int f = 0; f < kFeatures + 2; ++f) sums[f] = 0;
    sums[kFeatures] = AddGradient(weights, seen + before, batch, sums);
    sums[kFeatures + 1] = batch;
    if (least_us > 0) usleep((useconds_t)least_us);
    const double computed = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, sums, kFeatures + 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double done = MPI_Wtime();
    all =
        (int)sums[kFeatures + 1]; /* the samples really used: unequal batches are weighted right */
    for (int f = 0; f < kFeatures; ++f) weights[f] -= 0.05 * sums[f] / all;
    seen += all;

    dynamix_iteration iteration;
    dynamix_iteration_init(&iteration);
    iteration.compute_ms = 1e3 * (computed - start);
    iteration.communication_ms = 1e3 * (done - computed);
    iteration.iteration_ms = 1e3 * (MPI_Wtime() - start);
    iteration.loss = sums[kFeatures] / all;
    iteration.learning_rate = 0.05;
    iteration.progress = (double)seen / planned;
    dynamix_worker_end_iteration(worker, &iteration);
  }

  dynamix_counts counts = {sizeof counts};
  dynamix_worker_get_counts(worker, &counts);
  printf("rank %d of %d: %lld samples, loss %.4f, batch %d, %lld windows, %lld advised\n", rank,
         size, seen, sums[kFeatures] / sums[kFeatures + 1], dynamix_worker_batch(worker),
         counts.windows, counts.advised);
  dynamix_worker_stop(worker);
  MPI_Finalize();
  return 0;
}
