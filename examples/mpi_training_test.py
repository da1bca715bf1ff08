#!/usr/bin/env python3
"""Runs the MPI example with mpirun and a real arbitrator: every rank trains the planned samples and takes the advice.

usage: mpi_training_test.py DYNAMIX MPI_TRAINING SOURCE_DIR      (exit code 77: skipped)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(sys.argv[3]) / "tests"))
from arbitrator_processes import Arbitrator, Place  # noqa: E402

RANKS, SAMPLES, LEAST_MS, ATTEMPTS = 3, 16000, 4, 8


def run(address):
    command = ["mpirun", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "mpi_yield_when_idle", "1", "-n", str(RANKS),
               sys.argv[2], address, str(SAMPLES), str(LEAST_MS)]
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, env={**os.environ, **allow}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)
    lines = re.findall(r"rank \d of \d: (\d+) samples, loss ([\d.]+), batch (\d+), (\d+) windows, (\d+) advised", done.stdout)
    assert done.returncode == 0 and len(lines) == RANKS, done.stdout
    return lines


def main():
    if shutil.which("mpirun") is None:
        print("skipped: mpirun is not here (Debian package openmpi-bin)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        place = Place(sys.argv[1], "", sys.argv[3], folder)
        with Arbitrator(place, policy="static:24", flags=["--no-guard"]) as arbitrator:
            # On a busy machine the job may end before its advice comes: then it was no trial.
            for _ in range(ATTEMPTS):
                lines = run(arbitrator.address)
                assert all(int(samples) >= SAMPLES and float(loss) < 0.1 for samples, loss, *_ in lines), lines
                if all(int(batch) == 24 and int(advised) > 0 for _, _, batch, _, advised in lines):
                    break
            else:
                raise AssertionError(("the advice was never taken", lines))
    for samples, loss, batch, _, advised in run("127.0.0.1:1"):
        assert int(samples) >= SAMPLES and float(loss) < 0.1 and int(batch) == 16 and int(advised) == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
