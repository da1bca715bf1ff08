"""Unequal batches give the update of one process on the union of the samples."""
import contextlib
import sys
import weakref

import numpy
import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import dynamix
import dynamix.torch
from dynamix.torch._exchange import Exchange, _given, _keep_sent, scale
from ranks import Wanders, network, run_ranks, samples, weights

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def adapted(rank, size, kind, accumulate, clip, steps):
    """Trains on ranks with sizes that change all the time. Returns the weights and every batch's
    sizes."""
    model = DistributedDataParallel(network())
    optimizer = OPTIMIZERS[kind](model.parameters())
    job = dynamix.torch.adapt(model, optimizer, samples(), batch_size=8, policy=Wanders(), window=2,
                              rule="none", guard=False, monitor="none",
                              loader={"drop_last": accumulate > 1})
    sizes, batch = [], 0
    for epoch in range(100):
        for inputs, targets in job.batches(epoch):
            batch += 1
            sizes.append(job.batch_sizes if job.samples_seen % 240 else "last of an epoch")
            last = batch % accumulate == 0
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.cross_entropy(model(inputs), targets) / accumulate
                loss.backward()
            if last:
                if clip:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
            if batch == steps * accumulate:
                return weights(model), sizes, job.samples_seen
    raise AssertionError("never here")


def alone(kind, accumulate, clip, sizes):
    """One process on the same global batches, in the order the job reads them."""
    model = network()
    optimizer = OPTIMIZERS[kind](model.parameters())
    data = samples()
    sampler = dynamix.Sampler(len(data), 0)
    for batch, each in enumerate(sizes, 1):
        left = len(data) - sampler.cursor % len(data)
        count = left if each == "last of an epoch" else sum(each)
        if accumulate > 1 and count > left:  # drop_last
            sampler = dynamix.Sampler(len(data), 0, sampler.cursor + left)
        inputs, targets = data[sampler.part([count], 0)]
        sampler.advance([count])
        (nn.functional.cross_entropy(model(inputs), targets) / accumulate).backward()
        if batch % accumulate == 0:
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
    return weights(model)


@pytest.mark.parametrize("kind,accumulate,clip", [("sgd", 1, None), ("adamw", 1, None),
                                                  ("sgd", 1, 0.05), ("sgd", 3, None)])
def test_unequal_ranks_equal_one_process_on_the_union(kind, accumulate, clip):
    found = run_ranks(3, adapted, kind, accumulate, clip, 24)
    assert all(torch.equal(found[0][0], other[0]) for other in found), "ranks drifted apart"
    sizes = found[0][1]
    assert len({size for size in sizes if size != "last of an epoch"}) > 3, "the sizes never changed"
    expected = alone(kind, accumulate, clip, sizes)
    torch.testing.assert_close(found[0][0], expected, rtol=2e-5, atol=2e-5)


def _exits(rank, size):
    model = DistributedDataParallel(network())
    exchange = Exchange(model)
    exchange.attach(model)
    model(torch.ones(2, 6)).sum().backward()
    before = sys.getrefcount(exchange)
    _keep_sent(weakref.ref(exchange))
    _given.clear()
    exchange.gather(numpy.ones(2))
    exchange.begin(1, None, [])
    exchange.tail.samples()
    exchange.reset()
    return len(exchange._sent), sys.getrefcount(exchange) - before, len(_given), sys.getrefcount(_given)


def test_what_was_sent_is_kept_beyond_the_end_of_the_interpreter():
    """A thread of the group that lets go of it as the last one would abort the process."""
    for buckets, references, given, holders in run_ranks(2, _exits):
        assert buckets > 0 and references == 1
        assert given == 2, "the row of numbers and the tail"
        assert holders > 3, "its module, this module, the call, and one who never lets go"
    _keep_sent(lambda: None)  # a job that is gone


def _scales(rank, size):
    for threads, dtype, precision in ((1, torch.float32, 1e-6), (1, torch.float64, 1e-12),
                                      (1, torch.bfloat16, 1e-4), (2, torch.float32, 1e-5)):
        torch.set_num_threads(threads)
        for count in (0, 1, 5000, 1 << 17):
            flat = torch.randn(count, generator=torch.Generator().manual_seed(2)).to(dtype)
            expected, square = flat * (1 / 3), flat.double().square().sum().item()
            assert float(scale(flat, 1 / 3)) == pytest.approx(square, rel=precision)
            assert torch.equal(flat, expected)


def test_a_bucket_is_scaled_as_pytorch_does_it():
    run_ranks(1, _scales)
