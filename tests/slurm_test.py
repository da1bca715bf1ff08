#!/usr/bin/env python3
"""The scripts of examples/slurm under a real Slurm: controller and three nodes on hosts of their own (emulated_hosts.py).

Ranks find each other, and the arbitrator, a step of its own with mutual TLS, serves them. A rank that is killed and a node
that dies are a smaller team. A requeued job saves, and goes on where it was; so does a cancelled one. A job in Python trains,
and is requeued when a rank is lost. What a batch script starts without srun is no rank.

usage: slurm_test.py DYNAMIX PYTHON_PACKAGE FASHION_MNIST_FOLDER SOURCE_DIR
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from emulated_hosts import wait_until  # noqa: E402
from slurm_cluster import Slurm, missing  # noqa: E402

PROGRAM, PACKAGE, DATA, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
sys.path.insert(0, str(SOURCE / "dynamix/cli"))
from small_job import workload  # noqa: E402

JOB = "vision"
NODES = 3


class Job:
    """A submitted script."""

    def __init__(self, slurm, work, script, *words, options=(), environment=None):
        self.slurm, self.work = slurm, work
        self.number = slurm.submit(SOURCE / "examples/slurm" / script, *words, folder=work, options=options,
                                   environment={"DYNAMIX": str(PROGRAM), "OMP_NUM_THREADS": "1", **(environment or {})})

    def said(self):
        log = self.work / f"dynamix-{self.number}.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def state(self):
        return self.slurm.state(self.number)

    def wait_for(self, what):
        return wait_until(what, lambda: f"{self.state()} {self.said()[-4000:]} {self.slurm.logs()}")

    def wait_for_words(self, words, times=1):
        self.wait_for(lambda: self.said().count(words) >= times)

    def wait_for_state(self, state):
        self.wait_for(lambda: self.state() == state)

    def kill_rank(self, number):
        os.kill(self.wait_for(lambda: self.slurm.rank(self.number, number)), signal.SIGKILL)


class ElasticJob(Job):
    """examples/slurm/train.sbatch with an arbitrator, whose record tells how far the job is."""

    def __init__(self, slurm, work):
        for words in (("arbitrator", "arbitrator"), ("job", JOB)):
            subprocess.run([SOURCE / "scripts/make-certs", work / "certs", *words], check=True, stdout=subprocess.DEVNULL)
        (work / "long.toml").write_text(workload(base_batch=8 * NODES, planned_samples=1e8, accuracy=0.999))
        super().__init__(slurm, work, "train.sbatch", "--workload", work / "long.toml", "--window", "5", "--start-batch", "8",
                         "--timeout", "10", "--data", DATA, "--checkpoint-every", "1000",
                         options=(f"--job-name={JOB}", f"--nodes={NODES}"), environment={"DYNAMIX_POLICY": "balanced"})
        self.folder = work / f"runs/slurm-{self.number}"

    def lines(self):
        """Of the record; without the line being written just now."""
        path = self.folder / f"arbitrator/{JOB}/rounds.jsonl"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def rounds(self):
        return [json.loads(line)["round"] for line in self.lines()]

    def last_round(self):
        return json.loads(self.lines()[-1])

    def goes_on(self):
        """Waits for more rounds; returns the first of them."""
        before = len(self.rounds())
        self.wait_for(lambda: len(self.rounds()) > before + 3)
        return self.rounds()[before]


def shrinks_and_resumes(slurm, work):
    """Leaves the job running, without one of its nodes, which it has not noticed yet."""
    job = ElasticJob(slurm, work)
    job.goes_on()
    steps = slurm.ask("squeue", "-h", "-s", "-j", job.number, "-o", "%j %N")
    assert "arbitrator n1" in steps and "ranks n[1-3]" in steps, steps
    assert all(report["network"]["bytes_sent"] > 0 for report in job.last_round()["reports"]), "ranks measure their network"
    job.kill_rank(2)
    job.wait_for_words("the team is now 2 of 3 workers: 0, 1")
    reached = job.goes_on()
    assert not (job.folder / "checkpoint.bin").exists()
    slurm.ask("scontrol", "requeue", job.number)
    job.wait_for_words("saved to")
    assert (job.folder / "checkpoint.bin").exists()
    job.wait_for_words("serving balanced", times=2)
    assert job.goes_on() >= reached, "the requeued job began anew"
    slurm.hosts["n3"].pull_the_plug()
    return job


def python_trains(slurm, work):
    """A rank is lost while all start: the job comes back, and is done."""
    job = Job(slurm, work, "train_python.sbatch", SOURCE / "examples/python/fashion_mnist.py", "--epochs", "1", "--samples", "640",
              options=("--nodes=2",), environment={"PYTHONPATH": str(PACKAGE), "DYNAMIX_FASHION_MNIST": str(DATA)})
    job.kill_rank(1)
    job.wait_for_words("epoch 0: accuracy")
    job.wait_for_state("COMPLETED")
    assert "Restarts=1" in slurm.ask("scontrol", "show", "job", job.number), job.said()


def saved_when_cancelled(slurm, job):
    """The node that died is down by now, which is not the end of the job."""
    job.wait_for_words("the team is now 2 of 3 workers: 0, 1", times=2)
    job.wait_for(lambda: any(state.startswith("down") for state in slurm.states()))
    job.goes_on()
    assert job.state() == "RUNNING", job.said()
    before = (job.folder / "checkpoint.bin").stat().st_mtime_ns
    slurm.ask("scancel", job.number)
    job.wait_for_state("CANCELLED")
    job.wait_for_words("saved to", times=2)
    assert (job.folder / "checkpoint.bin").stat().st_mtime_ns > before


def without_srun(slurm, work):
    """A program that a batch script starts by itself starts its own ranks."""
    script = work / "alone.sbatch"
    script.write_text(f"#!/bin/sh\nexec {PROGRAM} train --backend live --workers 2 --workload {work}/long.toml --samples 200 --full "
                      f"--no-record --data {DATA}\n")
    number = slurm.submit(script, folder=work, options=("--nodes=1", "--ntasks=2", "--output=alone.log"))
    wait_until(lambda: slurm.state(number) not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"), slurm.logs)
    assert slurm.state(number) == "COMPLETED", (work / "alone.log").read_text()


def main():
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        work.chmod(0o755)
        started = time.monotonic()

        def done(what):
            print(f"ok     {what} ({time.monotonic() - started:.1f} s since the start)", flush=True)

        with Slurm(work / "slurm", NODES) as slurm:
            job = shrinks_and_resumes(slurm, work)
            done("shrinks_and_resumes")
            python_trains(slurm, work)
            done("python_trains")
            without_srun(slurm, work)
            done("without_srun")
            saved_when_cancelled(slurm, job)
            done("saved_when_cancelled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
