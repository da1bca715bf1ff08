// The virtual cluster: real SGD on real data (RealConvergence) on the simulator's clock
// (SimulatedCluster). Same sampler, weights, reports and policies as a live job; 32 and more
// workers on one machine.
//
// It passes environment_conformance.h like any Environment. Thread-safety and failure are those of
// its two parts; construction throws InputError. Call SetThreads (classifier.h) first.
#pragma once

#include <cstdint>
#include <memory>

#include "dynamix/job/job_spec.h"
#include "dynamix/simulator/simulated_cluster.h"
#include "dynamix/training/dataset.h"

namespace dynamix {

struct VirtualClusterOptions {
  // The truth is measured on the first so many held-out samples; 0: 2,000 images, or 125 sequences.
  int held_out_samples = 0;
  int noise_every = 2;        // see RealConvergenceOptions
  double evaluate_every = 0;  // see SimulatedCluster::set_evaluate_every
  int norm_groups = 4096;     // see RealConvergenceOptions
};

// `data` is shared with other jobs, which only read it: load it once (LoadDataset of
// workload.model.dataset). Limits: the workload's target accuracy or loss; an improvement target
// needs a reference run, which is the caller's, so then no target is set.
std::unique_ptr<SimulatedCluster> MakeVirtualCluster(const JobSpec& job,
                                                     std::shared_ptr<const Dataset> data,
                                                     const VirtualClusterOptions& options = {});

}  // namespace dynamix
