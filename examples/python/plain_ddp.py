#!/usr/bin/python3
"""An ordinary DistributedDataParallel script. adaptive_ddp.py is the same with adaptive batches."""
import os
import sys

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import fashion_mnist


def main(epochs, samples=None):
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(1)
    dataset = fashion_mnist("train", samples)
    model = DistributedDataParallel(nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if os.environ["RANK"] == "0":
            print(f"epoch {epoch}: loss {loss.item():.3f}")


main(*map(int, sys.argv[1:] or ["3"]))
