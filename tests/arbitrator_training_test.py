#!/usr/bin/env python3
"""Real training (libtorch, two ranks) through an arbitrator: nobody there, served, killed in the middle. With constant advice
the weights are those of a job that runs its arbitrator inside rank 0, bit for bit; with other advice the batches follow.

usage: arbitrator_training_test.py DYNAMIX FASHION_MNIST_FOLDER SOURCE_DIR
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_processes import Arbitrator, Place  # noqa: E402

sys.path.insert(0, str(pathlib.Path(sys.argv[3]) / "dynamix/cli"))
from train_command_test import CLUSTER, WORKLOAD, command, weights  # noqa: E402


def start(program, folder, work, *more):
    # Plain: a testbed's ranks have networks of their own, without this machine's loopback.
    return subprocess.Popen(command(program, folder, work, "--testbed", "plain", *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(output)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(WORKLOAD)
        (work / "paced.toml").write_text(CLUSTER)
        place = Place(program, "", sys.argv[3], work)

        alone = finish(start(program, work / "alone", work))
        finish(start(program, work / "nobody", work, "--advisor", "127.0.0.1:1", "--advisor-timeout", "0.2"))
        assert weights(work / "nobody") == weights(work / "alone"), "without an arbitrator: other weights"

        with Arbitrator(place, flags=["--run", str(work / "arbitrator")]) as arbitrator:
            more = ["--advisor", arbitrator.address, "--job", "real"]
            summary = finish(start(program, work / "served", work, *more))
            rounds = (work / "arbitrator/real/rounds.jsonl").read_text().splitlines()
            assert len(rounds) == summary["windows"] == alone["windows"], (len(rounds), summary, alone)
            assert weights(work / "served") == weights(work / "alone"), "constant advice: other weights"

            process = start(program, work / "killed", work, "--advisor", arbitrator.address, "--job", "orphan",
                            "--advisor-timeout", "0.2")
            while not (work / "arbitrator/orphan/rounds.jsonl").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.005)
            arbitrator.end(signal.SIGKILL)
            finish(process)
            assert weights(work / "killed") == weights(work / "alone"), "a killed arbitrator: other weights"

        with Arbitrator(place, policy="static:12", flags=["--no-guard"]) as arbitrator:
            summary = finish(start(program, work / "moved", work, "--advisor", arbitrator.address))
            assert summary["last_global_batch"] == 24, summary


if __name__ == "__main__":
    main()
