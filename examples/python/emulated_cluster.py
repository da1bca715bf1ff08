#!/usr/bin/python3
"""LeNet on Fashion-MNIST to a target accuracy, on the emulated cluster of scripts/demo; with --adapt the
same with adaptive batch sizes. scripts/demo-python compares the two.

    dynamix launch --cluster live/demo --workload demo/lenet_fashion -- \\
        /usr/bin/python3 examples/python/emulated_cluster.py --adapt
"""
import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import dynamix
import dynamix.torch
from data import fashion_mnist
from dynamix.testbed import emulate

flags = argparse.ArgumentParser()
flags.add_argument("--adapt", action="store_true")
flags.add_argument("--policy", default="default")
flags.add_argument("--run", default="runs/python")
flags.add_argument("--target", type=float, default=0.88)
flags.add_argument("--batch", type=int, default=64)
flags.add_argument("--epochs", type=int, default=7)
flags.add_argument("--samples", type=int)
flags.add_argument("--seed", type=int, default=1)
flags = flags.parse_args()

rank, size, _ = dynamix.torch.init_process_group()
torch.set_num_threads(1)
torch.manual_seed(flags.seed)
data, judged = fashion_mnist("train", flags.samples), fashion_mnist("t10k", flags.samples)
model = nn.parallel.DistributedDataParallel(nn.Sequential(
    nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(),
    nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
clock = emulate(model)  # nothing outside of an emulated cluster
record = dynamix.Recorder(flags.run, name="lenet", target=flags.target, clock=clock)


def evaluate():
    """Rank 0 judges, all hear of it; True when the target is reached."""
    with clock.paused():
        right = torch.zeros(1)
        if rank == 0:
            with torch.no_grad():
                guesses = [model.module(part).argmax(1) for part in judged.tensors[0].split(1000)]
            right[0] = (torch.cat(guesses) == judged.tensors[1]).float().mean()
        torch.distributed.broadcast(right, 0)
    return record.evaluated(accuracy=right.item())


def cosine(progress):
    """The rate's schedule, by the share of all samples that were seen."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.5 + 0.5 * math.cos(math.pi * progress()))


def step(images, labels, schedule):
    scores = model(images)
    loss = nn.functional.cross_entropy(scores, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()
    return loss, (scores.argmax(1) == labels).float().mean()


def plain():
    sampler = DistributedSampler(data, seed=flags.seed)
    loader = DataLoader(data, batch_size=flags.batch, sampler=sampler)
    if rank == 0:
        record.begin(policy=f"plain DDP, {flags.batch}", workers=size)
    iterations = 0
    schedule = cosine(lambda: iterations / (flags.epochs * len(loader)))
    for epoch in range(flags.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            step(images, labels, schedule)
            iterations += 1
            if iterations % 20 == 0:
                done = evaluate()
                record.add_batches([flags.batch] * size)
                if done:
                    return iterations
    return iterations


def adaptive():
    job = dynamix.torch.adapt(model, optimizer, data, flags.batch, policy=flags.policy, seed=flags.seed,
                              epochs=flags.epochs, schedule="cosine", run=record)
    schedule = cosine(lambda: job.progress)
    iterations = 0
    for epoch in range(flags.epochs):
        for images, labels in job.batches(epoch):
            loss, accuracy = step(images, labels, schedule)
            job.report(loss=loss, accuracy=accuracy)
            iterations += 1
            if iterations % 20 == 0:
                with job.paused():
                    done = evaluate()
                if done:
                    return job.close()
    job.close()


if flags.adapt:
    adaptive()
else:
    iterations = plain()
    record.finish(samples=iterations * flags.batch * size, iterations=iterations)
