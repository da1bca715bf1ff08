"""Launchers: torchrun with its restarts, mpirun, and what the environment says."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
SCRIPT = TESTS / "restarted.py"
LIMIT_S = 600  # only a fault takes so long


def launch(command, folder, **environment):
    """Runs restarted.py under a launcher, in a folder that it returns. Launchers choose a port before
    their ranks bind it, and by then it may be another process's: the launch is then repeated."""
    for attempt in range(5):
        place = folder / str(attempt)
        place.mkdir()
        done = subprocess.run([*command, str(SCRIPT), str(place)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=LIMIT_S, env={**os.environ, **environment, "MASTER_PORT": free_port()})
        if done.returncode == 0 or not re.search("address already in use|EADDRINUSE", done.stdout, re.I):
            break
    assert done.returncode == 0, done.stdout[-4000:]
    return place


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def read(folder, life, iterations=None):
    """Samples that all ranks read in a life, in its first `iterations`."""
    return [int(number) for rank in range(2)
            for line in (folder / f"read-{life}-{rank}").read_text().splitlines()[:iterations]
            for number in line.split()]


def test_torchrun_restarts_a_job_that_goes_on_where_it_saved(tmp_path):
    if shutil.which("torchrun") is None:
        pytest.skip("needs torchrun")
    # -r 1 -t 1: Debian's torchrun does not start without.
    folder = launch([sys.executable, "-m", "torch.distributed.run", "-r", "1", "-t", "1", "--nproc_per_node", "2",
                     "--max_restarts", "1", "--master_port", "0", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                     "127.0.0.1:0", "--log_dir", str(tmp_path / "logs")], tmp_path)
    first = read(folder, 0, iterations=6)  # the eighth killed it, the sixth was saved
    assert len(first) < 211
    assert sorted(first + read(folder, 1)) == sorted(2 * list(range(211)))


def test_mpirun(tmp_path):
    if shutil.which("mpirun") is None:
        pytest.skip("needs openmpi-bin")
    folder = launch(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable], tmp_path)
    assert sorted(read(folder, 1)) == sorted(2 * list(range(211)))
