#!/usr/bin/python3
"""A rank of a job that torchelastic starts again: DDP on Gloo, everything restored from the last iteration's checkpoint. Rank 0
writes a line per iteration, with its number.

usage: torchrun ... recovery_torchelastic.py FOLDER
"""
import os
import pathlib
import sys

import torch
import torch.distributed
from torch import nn


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    (folder / f"pid{rank}").write_text(str(os.getpid()))
    torch.manual_seed(1)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    checkpoint = folder / "checkpoint.pt"
    begin = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["iteration"]
    for iteration in range(begin, 1 << 30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(8, 784)), torch.randint(10, (8,)))
        loss.backward()
        optimizer.step()
        if rank == 0:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "iteration": iteration + 1}
            torch.save(state, folder / "checkpoint.next")
            os.replace(folder / "checkpoint.next", checkpoint)
            with open(folder / "log", "a") as log:
                log.write(f"{iteration}\n")


if __name__ == "__main__":
    main()
