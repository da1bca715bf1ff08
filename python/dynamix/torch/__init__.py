"""Batch sizes that adapt while an ordinary DistributedDataParallel job trains.

    import dynamix.torch as dynamix

    job = dynamix.adapt(ddp_model, optimizer, dataset, batch_size=64)
    for epoch in range(epochs):
        for inputs, targets in job.batches(epoch):
            loss = criterion(ddp_model(inputs), targets)
            loss.backward(); optimizer.step(); optimizer.zero_grad()
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.data import Dataset

from dynamix import Recorder, _core
from dynamix._core import InputError
from dynamix.torch._job import Job

__all__ = ["InputError", "Job", "adapt", "init_process_group"]


def adapt(model: DistributedDataParallel, optimizer: Optimizer, dataset: Dataset, batch_size: int, *,
          policy: Any = "default", advisor: str | Mapping[str, Any] | None = None,
          rule: str | None = None, target: float | Mapping[str, float] | None = None, window: int = 10, seed: int = 0,
          job: str | None = None, loader: Mapping[str, Any] | None = None,
          epochs: int | None = None, base_batch: int | None = None, min_batch: int | None = None,
          max_batch: int | None = None, granularity: int = 1, schedule: str = "constant", clock: str = "samples",
          scaler: Any = None, guard: bool = True, monitor: str = "ebpf", count: Callable[[Any, int], int] | None = None,
          run: str | Recorder | None = None) -> Job:
    """Makes the batch size of every rank follow a policy. Call it on all ranks with the same
    arguments, once per model, before training.

    model       a DistributedDataParallel model; it gets a communication hook
    optimizer   of that model; its learning rates follow `rule`
    dataset     any map-style data set; the job decides which rank reads which sample
    batch_size  samples of a rank in a batch at the start (see base_batch)
    policy      a rule ("balanced", "goodput", ...; docs/rules.md), a shipped policy ("default"), a
                policy file, or an object with decide(round, states)
    advisor     "HOST:PORT[,HOST:PORT...]" of an arbitrator, or a dictionary of AdvisorOptions; then
                `policy` is the arbitrator's. Default: the policy runs inside rank 0
    rule        how the learning rate follows the global batch: "none", "linear", "sqrt", "adascale".
                Default: "sqrt" for Adam and its like, else "adascale". At the base batch every rule
                leaves the rate alone
    target      what the user waits for: an accuracy, (0, 1), or {"loss": ...}
    window      iterations between two decisions
    seed        of the order of samples
    job         name of the job at the arbitrator
    loader      what DataLoader takes: num_workers, pin_memory, collate_fn, persistent_workers, ...
    epochs      planned; tells the policy how far the job is
    base_batch  samples of all ranks in an optimizer step that the optimizer's rates were chosen for.
                Default: those of the start. Say it when ranks were added and the rates stayed: the
                rule scales the rates from there, and where it is below the start, learned policies
                and the rules "base" and "composite" begin with it
    min_batch, max_batch, granularity
                of a rank's batch. Default: an eighth to eight times batch_size (and of a rank's share
                of base_batch), and on a GPU what its memory holds
    schedule    "constant", "cosine", "step" or "warmup": what the user's scheduler does
    clock       what moves job.progress on: "samples", or "steps", each as long as the rule's factor on
                the learning rate; then a large batch does not use up the schedule, and sees more epochs
    scaler      a GradScaler, or anything with get_scale(): what the loss is multiplied by
    guard       take back advice that makes the job slower
    monitor     best source of network metrics: "ebpf", "inet_diag", "own_sockets", "interface"; or
                "none" to measure neither network nor host. Where "ebpf" is refused, "own_sockets"
                follows: "inet_diag" walks through all sockets of the machine
    count       function (batch, asked) -> samples in a batch, when they are not the first dimension
                of its first tensor
    run         folder that rank 0 records the run in, or a Recorder; not with `advisor`, where the
                arbitrator records. job.evaluated() tells it the held-out accuracy

    Raises InputError, which names the field, the value and what is allowed.
    """
    return Job(model, optimizer, dataset, batch_size, policy=policy, advisor=advisor, rule=rule,
               target=target, window=window, seed=seed, job=job, loader=loader or {}, epochs=epochs,
               base_batch=base_batch, min_batch=min_batch, max_batch=max_batch, granularity=granularity,
               schedule=schedule, clock=clock, scaler=scaler, guard=guard, monitor=monitor,
               count=count, run=run)


def init_process_group(backend: str | None = None, **options: Any) -> tuple[int, int, int]:
    """torch.distributed.init_process_group for ranks that dynamix launch, torchrun, Slurm or mpirun
    started. `backend`: default DYNAMIX_BACKEND, else "gloo". Returns (rank, size, local rank)."""
    place = _core.read_rank_place(dict(os.environ))
    # Gloo would take the address of this machine's name; on Debian that is 127.0.1.1, which the others
    # cannot reach.
    elsewhere = not place.address.startswith("127.") and place.address != "localhost"
    if elsewhere and (interface := _core.interface_towards(place.address)):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    torch.distributed.init_process_group(
        backend or place.backend, init_method=f"tcp://{place.address}:{place.port}",
        rank=place.rank, world_size=place.size, **options)
    return place.rank, place.size, place.local_rank
