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
from small_job import PACED, first_in_time  # noqa: E402
from train_command_test import WORKLOAD, command, weights  # noqa: E402


def start(program, folder, work, *more):
    # Plain: a testbed's ranks have networks of their own, without this machine's loopback.
    return subprocess.Popen(command(program, folder, work, "--testbed", "plain", *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(process):
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return json.loads(output)


def rounds_of(work, job):
    """What is written so far; without the line being written just now."""
    path = work / "arbitrator" / job / "rounds.jsonl"
    return [json.loads(line)["round"] for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(WORKLOAD)
        (work / "paced.toml").write_text(PACED)
        place = Place(program, "", sys.argv[3], work)

        alone = finish(start(program, work / "alone", work))
        finish(start(program, work / "nobody", work, "--advisor", "127.0.0.1:1", "--advisor-timeout", "0.2"))
        assert weights(work / "nobody") == weights(work / "alone"), "without an arbitrator: other weights"

        with Arbitrator(place, flags=["--run", str(work / "arbitrator")]) as arbitrator:
            def served(number):
                job = f"served-{number}"
                summary = finish(start(program, work / job, work, "--advisor", arbitrator.address, "--job", job))
                assert summary["windows"] == alone["windows"], (summary, alone)
                assert weights(work / job) == weights(work / "alone"), "constant advice: other weights"
                return rounds_of(work, job) or None

            rounds = first_in_time(served)
            assert rounds == sorted(set(rounds)) and 0 <= rounds[0] and rounds[-1] < alone["windows"], (rounds, alone)

            def killed(number):
                job = f"killed-{number}"
                process = start(program, work / job, work, "--advisor", arbitrator.address, "--job", job, "--advisor-timeout", "0.2")
                while not rounds_of(work, job) and process.poll() is None:
                    time.sleep(0.005)
                in_time = process.poll() is None
                if in_time:
                    arbitrator.end(signal.SIGKILL)
                finish(process)
                assert weights(work / job) == weights(work / "alone"), "a killed arbitrator: other weights"
                return True if in_time else None

            first_in_time(killed)

        with Arbitrator(place, policy="static:12", flags=["--no-guard"]) as arbitrator:
            def moved(number):
                job = f"moved-{number}"
                summary = finish(start(program, work / job, work, "--advisor", arbitrator.address, "--job", job))
                return summary if summary["last_global_batch"] == 24 else None

            first_in_time(moved)


if __name__ == "__main__":
    main()
