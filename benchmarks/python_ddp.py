#!/usr/bin/python3
"""One rank of an ordinary DDP job in which adapted and plain turns alternate, both at the same constant sizes.

usage: python_ddp.py lenet|resnet18 BATCH ITERATIONS TURNS      (torchrun's environment)

Each turn is a job of its own in the same process: model, optimizer and DDP are made anew, so that both kinds meet the same
machine. Rank 0 prints one JSON object: seconds of every turn, and until the first advised batch.
"""
import json
import sys
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import dynamix.torch


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


def turn(name, batch, data, iterations, adapt, rank, size):
    model, optimizer = make(name)
    if adapt:
        job = dynamix.torch.adapt(model, optimizer, data, batch, policy="default", min_batch=batch, max_batch=batch)
        loop = train(job.batches(0), model, optimizer, job.report)
    else:
        sampler = dynamix.Sampler(len(data), 0)
        lists = []
        while sampler.epoch == 0:
            lists.append(sampler.part([batch] * size, rank))
            sampler.advance([batch] * size)
        loop = train(DataLoader(data, batch_sampler=lists), model, optimizer)
    times = []
    begin = time.perf_counter()
    for _ in loop:
        now = time.perf_counter()
        times.append(now - begin)
        begin = now
        if len(times) == iterations + 5:
            break
    loop.close()
    return sum(times[5:])  # DDP rebuilds its buckets in the first ones


def first_advice(name, batch, data):
    """Seconds and iterations until another batch is in force, on ranks of which one is twice as slow."""
    model, optimizer = make(name)
    job = dynamix.torch.adapt(model, optimizer, data, batch, policy="balanced", guard=False)
    begin, count = time.perf_counter(), 0
    for _ in train(job.batches(0), model, optimizer):
        count += 1
        if torch.distributed.get_rank() == 1:
            time.sleep((time.perf_counter() - begin) / count)
        if job.batch_size != batch:
            return time.perf_counter() - begin, count
    return float("nan"), count


def main():
    name, batch, iterations, turns = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    rank, size, _ = dynamix.torch.init_process_group()
    shape = (1, 28, 28) if name == "lenet" else (3, 32, 32)
    count = batch * size * (iterations + 6)
    data = TensorDataset(torch.randn(count, *shape), torch.randint(10, (count,)))
    seconds = {True: [], False: []}
    for number in range(turns):
        for adapt in ((True, False) if number % 2 else (False, True)):
            seconds[adapt].append(turn(name, batch, data, iterations, adapt, rank, size) / iterations)
    advice = first_advice(name, batch, data) if name == "lenet" else None
    if rank == 0:
        print(json.dumps({"adapted": seconds[True], "plain": seconds[False], "first_advice": advice}))


main()
