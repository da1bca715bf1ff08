#!/usr/bin/python3
"""LeNet on Fashion-MNIST, with a batch size per rank that adapts.

    dynamix launch -n 4 -- /usr/bin/python3 examples/python/fashion_mnist.py
"""
import argparse

import torch
from torch import nn

import dynamix.torch as dynamix
from data import fashion_mnist

flags = argparse.ArgumentParser()
flags.add_argument("--epochs", type=int, default=3)
flags.add_argument("--samples", type=int)
flags.add_argument("--advisor", help="HOST:PORT of an arbitrator; default: the policy in rank 0")
flags = flags.parse_args()

rank, size, _ = dynamix.init_process_group()
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(
    nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(),
    nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
judged = fashion_mnist("t10k", flags.samples)
job = dynamix.adapt(model, optimizer, fashion_mnist("train", flags.samples), batch_size=64,
                    advisor=flags.advisor, epochs=flags.epochs)
for epoch in range(flags.epochs):
    for images, labels in job.batches(epoch):
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        job.report(loss=loss, accuracy=(scores.argmax(1) == labels).float().mean())
    if rank == 0:
        with torch.no_grad():
            right = (model.module(judged.tensors[0]).argmax(1) == judged.tensors[1]).float().mean()
        print(f"epoch {epoch}: accuracy {right:.4f}, batches {job.batch_sizes}, "
              f"noise scale {job.noise_scale:.0f}")
