#!/usr/bin/python3
"""The same job in PyTorch: DistributedDataParallel on Gloo, the same model, data, batch and optimizer as training_bench.

usage: training_pytorch.py MODEL WIDTH BATCH      (a rank of a job, torchrun's environment)
"""
import gzip
import json
import os
import sys
import time

import numpy
import torch
import torch.distributed
from torch import nn

DATA = "/usr/share/datasets/fashion-mnist/"


def lenet(_):
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(True), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2),
                         nn.ReLU(True), nn.Flatten(), nn.Linear(256, 120), nn.ReLU(True), nn.Linear(120, 84),
                         nn.ReLU(True), nn.Linear(84, 10))


def vgg16(width):
    layers, inputs = [nn.ZeroPad2d(2)], 1
    for channels in [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]:
        if channels == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        outputs = max(1, round(channels * width))
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(True)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))


def read(name, offset):
    with gzip.open(DATA + name) as file:
        return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=offset).copy())


def main():
    name, width, batch = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    images = (read("train-images-idx3-ubyte.gz", 16).float().view(-1, 1, 28, 28) / 255 - 0.286) / 0.353
    labels = read("train-labels-idx1-ubyte.gz", 8).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))[rank::size]
    net = nn.parallel.DistributedDataParallel({"lenet": lenet, "vgg16": vgg16}[name](width),
                                              gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    lost = nn.CrossEntropyLoss()
    total = correct = 0.0

    def iterate(i):
        nonlocal total, correct
        begin = i * batch % (len(order) - batch)
        rows = order[begin:begin + batch]
        wanted = labels[rows]
        optimizer.zero_grad()
        scores = net(images[rows])
        loss = lost(scores, wanted)
        loss.backward()
        optimizer.step()
        total += loss.item()
        correct += (scores.argmax(1) == wanted).sum().item()

    iterations = int(os.environ["BENCH_ITERATIONS"])
    for i in range(10):
        iterate(i)
    start = time.monotonic()
    for i in range(iterations):
        iterate(10 + i)
    if rank == 0:
        print(json.dumps({"samples_per_s": iterations * batch * size / (time.monotonic() - start)}))


if __name__ == "__main__":
    main()
