#!/usr/bin/env python3
"""Ranks of an elastic job as real processes: killed at every place of an iteration, the first one too, two at once, stopped
and continued, started again, lost while another one joins. Survivors end with the same weights, every sample is trained once,
and the weights are, bit for bit, those of a run in which each iteration was done from the start by the team that did it.

usage: elastic_ranks_test.py ELASTIC_RANK [RANDOM_SCHEDULES [SEED]]
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4
PATIENCE_S = 120


class Job:
    """Four ranks; those in `ends` end themselves: {rank: (place, iteration)}."""

    def __init__(self, program, work, ends=None, timeout_s=20):
        self.program, self.work, self.timeout_s = program, work, timeout_s
        self.started = {}
        self.strangers = set()  # ranks whose log may tell of iterations that the others did anew
        for rank in range(RANKS):
            self.start(rank, (ends or {}).get(rank))

    def start(self, rank, end=None, restarts=0):
        place = {"RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": rank, "DYNAMIX_STORE": self.work / "store",
                 "DYNAMIX_RESTARTS": restarts, "OMP_NUM_THREADS": 1, "ELASTIC_TIMEOUT_S": self.timeout_s}
        words = [self.program, "run", str(self.log(rank, restarts)), str(self.work / "stop"), *map(str, end or ())]
        self.started[rank] = subprocess.Popen(words, env={**os.environ, **{name: str(value) for name, value in place.items()}},
                                              stderr=subprocess.PIPE, text=True)

    def log(self, rank, restarts=0):
        return self.work / f"log{rank}.{restarts}"

    def lines(self, rank, restarts=0):
        path = self.log(rank, restarts)
        return path.read_text().splitlines() if path.exists() else []

    def wait(self, what):
        start = time.monotonic()
        while not what():
            assert time.monotonic() - start < PATIENCE_S, "nothing happens"
            time.sleep(0.002)

    def wait_for_iterations(self, rank, more, restarts=0):
        before = len(self.lines(rank, restarts))
        self.wait(lambda: len(self.lines(rank, restarts)) >= before + more or self.started[rank].poll() is not None)

    def kill(self, rank, how=signal.SIGKILL):
        self.started[rank].send_signal(how)
        if how == signal.SIGKILL:
            self.started[rank].wait()

    def finish(self, survivors):
        """Lets the job end; checks exit codes, samples and weights. Returns the sizes of its teams, in order."""
        (self.work / "stop").touch()
        for rank, process in self.started.items():
            _, errors = process.communicate(timeout=PATIENCE_S)
            expected = 0 if rank in survivors else -signal.SIGKILL
            assert process.returncode == expected, (rank, process.returncode, errors)
        logs = {path.name: path.read_text().splitlines() for path in self.work.glob("log*")}
        ended = {name: lines for name, lines in logs.items() if lines and lines[-1].startswith("weights")}
        assert len(ended) == len(survivors), (survivors, list(ended))
        weights = {lines[-1].split()[1] for lines in ended.values()}
        assert len(weights) == 1, f"ranks ended with different weights: {weights}"
        teams = self.ledger(logs, ended)
        reference = subprocess.run([self.program, "reference", str(self.work / "teams")], check=True, timeout=PATIENCE_S,
                                   stdout=subprocess.PIPE, text=True).stdout.strip()
        assert reference in weights, f"weights {weights}, those of the reference are {reference}"
        return [len(batches) for i, batches in enumerate(teams) if i == 0 or len(batches) != len(teams[i - 1])]

    def ledger(self, logs, ended):
        """Every iteration once, each from where the one before it ended. Returns the batches of each."""
        done, ends = {}, {}
        # What ranks say that lived to the end counts more: one that was lost may have been alone with its last step.
        trusted = [name for name in ended if int(name[3]) not in self.strangers]
        for name in [*(set(logs) - set(trusted)), *trusted]:
            for line in logs[name]:
                words = line.split()
                if words[0] != "weights":
                    ends[int(words[0])] = int(words[1])
                if words[-1] == "own":
                    done[int(words[0])] = (int(words[1]), [int(batch) for batch in words[2:-1]])
        cursor = 0
        last = max(int(line.split()[0]) for lines in ended.values() for line in lines[:-1])
        for iteration in range(1, last + 1):
            # A rank that is lost between the step and the end of its window leaves others who speak of the next team.
            end, batches = done.setdefault(iteration, (ends[iteration], done.get(iteration - 1, (0, []))[1]))
            assert end == cursor + sum(batches), (iteration, cursor, end, batches)
            cursor = end
        teams = [done[iteration][1] for iteration in range(1, last + 1)]
        (self.work / "teams").write_text("".join(" ".join(map(str, batches)) + "\n" for batches in teams))
        return teams

    def close(self):
        for process in self.started.values():
            process.kill()
            process.communicate()


def others(*lost):
    return [rank for rank in range(RANKS) if rank not in lost]


def killed_at_every_place(start):
    for place in ("forward", "tail", "round"):
        for rank in (0, 2):
            job = start({rank: (place, 12)})
            job.wait(lambda: job.started[rank].poll() is not None)
            job.wait_for_iterations(3, 15)
            assert job.finish(others(rank)) == [4, 3], (place, rank)


def two_at_once(start):
    job = start({0: ("tail", 12), 3: ("forward", 12)})
    job.wait(lambda: job.started[0].poll() is not None and job.started[3].poll() is not None)
    job.wait_for_iterations(1, 15)
    assert job.finish([1, 2])[-1] == 2


def until_one_is_left(start):
    job = start()
    for rank in (1, 0, 2):
        job.wait_for_iterations(3, 10)
        job.kill(rank)
    job.wait_for_iterations(3, 10)
    assert job.finish([3]) == [4, 3, 2, 1]


def stopped_and_continued(start):
    """The others go on after the timeout; the one that was stopped notices, and comes back."""
    job = start(timeout_s=4)
    job.strangers.add(0)
    job.wait_for_iterations(1, 10)
    job.kill(0, signal.SIGSTOP)
    job.wait_for_iterations(1, 10)
    job.kill(0, signal.SIGCONT)
    job.wait_for_iterations(0, 10)
    assert job.finish(others()) == [4, 3, 4]


def started_again(start):
    job = start({0: ("tail", 12)})
    job.wait(lambda: job.started[0].poll() is not None)
    job.wait_for_iterations(2, 10)
    job.start(0, restarts=1)
    job.wait_for_iterations(0, 15, restarts=1)
    assert job.finish(others()) == [4, 3, 4]


def lost_while_another_joins(start):
    """Rank 1 has the state for rank 0, and ends before it gave it away."""
    job = start({0: ("tail", 12), 1: ("state", 13)})
    job.wait(lambda: job.started[0].poll() is not None)
    job.wait_for_iterations(2, 10)
    job.start(0, restarts=1)
    job.wait_for_iterations(0, 15, restarts=1)
    assert job.finish(others(1))[-1] == 3


def random_schedules(count, seed):
    def run(start):
        draw = random.Random(seed)
        for _ in range(count):
            job = start()
            lost = draw.sample(range(RANKS), draw.choice((1, 1, 2, 3)))
            keeper = others(*lost)[0]
            for rank in lost:
                job.wait_for_iterations(keeper, draw.randrange(1, 20))
                time.sleep(draw.random() * 0.01)
                job.kill(rank)
            job.wait_for_iterations(keeper, 10)
            sizes = job.finish(others(*lost))
            assert sizes[-1] == RANKS - len(lost), (lost, sizes)
    run.__name__ = f"{count} random_schedules with seed {seed}"
    return run


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for check in (killed_at_every_place, two_at_once, until_one_is_left, stopped_and_continued, started_again,
                  lost_while_another_joins, random_schedules(count, seed)):
        jobs, folders = [], []

        def start(ends=None, **more):
            while jobs:
                jobs.pop().close()
            folders.append(tempfile.TemporaryDirectory())
            jobs.append(Job(program, pathlib.Path(folders[-1].name), ends, **more))
            return jobs[-1]

        started = time.monotonic()
        try:
            check(start)
        finally:
            for job in jobs:
                job.close()
            for folder in folders:
                folder.cleanup()
        print(f"ok     {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
