"""A rank of a job that its launcher starts again: saves after every third iteration, and in its first
life one rank dies. Writes the samples it read, by life.

usage: restarted.py FOLDER      (the environment of torchrun, mpirun, Slurm or dynamix launch)
"""
import os
import pathlib
import sys

import torch
from torch.nn.parallel import DistributedDataParallel

import dynamix.torch
from ranks import Wanders, network
from test_job import Numbered, step

EPOCHS, SAMPLES, DIES_AT = 2, 211, 8


def main(folder):
    torch.set_num_threads(1)
    rank, _, _ = dynamix.torch.init_process_group()
    life = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 1))
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    job = dynamix.torch.adapt(model, optimizer, Numbered(SAMPLES), 8, policy=Wanders(), window=2,
                              guard=False, monitor="none")
    saved = folder / "saved"
    if saved.exists():
        job.load_state_dict(torch.load(saved)["job"])
    read = open(folder / f"read-{life}-{rank}", "w")
    iterations = 0
    for epoch in range(job.epoch, EPOCHS):
        for inputs, numbers in job.batches(epoch):
            step(model, optimizer, inputs * 0, numbers)
            print(*numbers.tolist(), file=read, flush=True)
            iterations += 1
            if iterations % 3 == 0:
                state = {"job": job.state_dict(), "iterations": iterations}
                if rank == 0:
                    torch.save(state, folder / "new")
                    os.replace(folder / "new", saved)
                torch.distributed.barrier()  # nobody goes on before it is there
            if life == 0 and rank == 1 and iterations == DIES_AT:
                os._exit(3)


main(pathlib.Path(sys.argv[1]))
