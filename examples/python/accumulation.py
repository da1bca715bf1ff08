#!/usr/bin/python3
"""Gradient accumulation: four batches for each step, which is what adapts.

    dynamix launch -n 2 -- /usr/bin/python3 examples/python/accumulation.py
"""
import argparse
import contextlib

import torch
from torch import nn

import dynamix.torch as dynamix
from data import fashion_mnist

flags = argparse.ArgumentParser()
flags.add_argument("--epochs", type=int, default=3)
flags.add_argument("--samples", type=int)
flags = flags.parse_args()
ACCUMULATE = 4

rank, size, _ = dynamix.init_process_group()
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(
    nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
job = dynamix.adapt(model, optimizer, fashion_mnist("train", flags.samples), batch_size=32,
                    epochs=flags.epochs, loader={"drop_last": True})
for epoch in range(flags.epochs):
    for number, (images, labels) in enumerate(job.batches(epoch), 1):
        last = number % ACCUMULATE == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(images), labels)
            (loss / ACCUMULATE).backward()
        job.report(loss=loss)
        if last:
            optimizer.step()
            optimizer.zero_grad()
    if rank == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, batches {job.batch_sizes} x {ACCUMULATE}")
