#!/usr/bin/python3
"""One rank of two ordinary DDP jobs side by side, one of them adapted, both at the same constant sizes.

usage: python_ddp.py lenet|resnet18 BATCH TURNS [plain|adapted]      (torchrun's environment)

The two jobs train in turns of one window, so that both meet the same machine and each turn of the adapted one pays for one
decision. Rank 0 prints one JSON object: seconds per iteration of every turn, on the wall and of the processor, and the time
until the first advised batch. With a kind only that job runs, and its process's largest memory is printed.
"""
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import dynamix.torch

WINDOW = 10


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(True), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(True),
                         nn.Flatten(), nn.Linear(256, 120), nn.ReLU(True), nn.Linear(120, 84), nn.ReLU(True), nn.Linear(84, 10))


def resnet18():
    import torchvision
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def train(batches, model, optimizer, report=None):
    """Iterations as a user writes them. Yields after each."""
    for inputs, targets in batches:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if report:
            report(loss=loss)
        yield


def make(name):
    torch.manual_seed(1)
    model = DistributedDataParallel({"lenet": lenet, "resnet18": resnet18}[name]())
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def plain(name, batch, data, rank, size):
    model, optimizer = make(name)
    sampler = dynamix.Sampler(len(data), 0)
    lists = []
    while sampler.epoch == 0:
        lists.append(sampler.part([batch] * size, rank))
        sampler.advance([batch] * size)
    return train(DataLoader(data, batch_sampler=lists), model, optimizer)


def adapted(name, batch, data):
    model, optimizer = make(name)
    job = dynamix.torch.adapt(model, optimizer, data, batch, window=WINDOW, min_batch=batch, max_batch=batch)
    return train(job.batches(0), model, optimizer, job.report)


def turn(loop):
    """Seconds of an iteration: on the wall, and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(WINDOW):
        next(loop)
    return (time.perf_counter() - wall) / WINDOW, (time.process_time() - processor) / WINDOW


def first_advice(name, batch, data):
    """Seconds and iterations until another batch is in force, on ranks of which one is twice as slow."""
    model, optimizer = make(name)
    job = dynamix.torch.adapt(model, optimizer, data, batch, policy="balanced", guard=False, window=WINDOW)
    begin, count = time.perf_counter(), 0
    for _ in train(job.batches(0), model, optimizer):
        count += 1
        if torch.distributed.get_rank() == 1:
            time.sleep((time.perf_counter() - begin) / count)
        if job.batch_size != batch:
            return time.perf_counter() - begin, count
    return float("nan"), count


def main():
    name, batch, turns = sys.argv[1], *map(int, sys.argv[2:4])
    torch.set_num_threads(1)
    rank, size, _ = dynamix.torch.init_process_group()
    shape = (1, 28, 28) if name == "lenet" else (3, 32, 32)
    count = batch * size * WINDOW * (turns + 2)
    data = TensorDataset(torch.randn(count, *shape), torch.randint(10, (count,)))
    begin = {"plain": lambda: plain(name, batch, data, rank, size), "adapted": lambda: adapted(name, batch, data)}
    kinds = sys.argv[4:] or list(begin)
    loops = {kind: begin[kind]() for kind in kinds}
    for loop in loops.values():
        turn(loop)  # DDP rebuilds its buckets in the first iterations
    seconds = {kind: [] for kind in kinds}
    for number in range(turns):
        for kind in reversed(kinds) if number % 2 else kinds:
            seconds[kind].append(turn(loops[kind]))
    advice = first_advice(name, batch, data) if len(kinds) == 2 and name == "lenet" else None
    if rank == 0:
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({**seconds, "peak_mb": peak_mb, "first_advice": advice}))


main()
