"""Ranks of a small job as real processes over Gloo."""
import datetime
import io
import multiprocessing
import os
import tempfile
import traceback

import torch
import torch.distributed as dist
from torch import nn

TIMEOUT_S = 300  # only a fault takes so long


def _rank(body, rank, size, store, results, arguments):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=TIMEOUT_S))
        found = io.BytesIO()
        torch.save(body(rank, size, *arguments), found)  # bytes outlive the rank, shared memory not
        results.put((rank, found.getvalue(), None))
        dist.destroy_process_group()
    except Exception:  # shown by the test
        results.put((rank, None, traceback.format_exc()))


def run_ranks(size, body, *arguments, start="fork"):
    """body(rank, size, *arguments) in `size` processes; what each returned. Fails with the first
    traceback."""
    context = multiprocessing.get_context(start)
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        processes = [context.Process(target=_rank, args=(body, rank, size, os.path.join(folder, "s"),
                                                         results, arguments))
                     for rank in range(size)]
        for process in processes:
            process.start()
        try:
            found = {}
            while len(found) < size:
                rank, value, failure = results.get(timeout=TIMEOUT_S)
                assert failure is None, f"rank {rank}:\n{failure}"
                found[rank] = torch.load(io.BytesIO(value))
            for process in processes:
                process.join(TIMEOUT_S)
                assert process.exitcode == 0
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
        return [found[rank] for rank in range(size)]


def samples(count=240, inputs=6, classes=3, seed=5):
    """A data set that a small network can learn."""
    generator = torch.Generator().manual_seed(seed)
    inputs_ = torch.randn(count, inputs, generator=generator)
    teacher = torch.randn(inputs, classes, generator=generator)
    return torch.utils.data.TensorDataset(inputs_, (inputs_ @ teacher).argmax(1))


def network(inputs=6, classes=3):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, classes))


def weights(model):
    return torch.cat([p.detach().reshape(-1).clone() for p in model.parameters()])


class Wanders:
    """A policy that gives every worker another batch in every round."""

    def __init__(self, low=4, high=16):
        self.random = torch.Generator().manual_seed(11)
        self.low, self.high = low, high

    def decide(self, round, states):
        return torch.randint(self.low, self.high, (len(round.entries),),
                             generator=self.random).tolist()
