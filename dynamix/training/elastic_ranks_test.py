#!/usr/bin/env python3
"""Ranks of an elastic job as real processes: killed at every place of an iteration, the first one too, two at once, stopped
and continued, started again, lost while others recover or join, in random order. Survivors end with the same weights, every
sample is trained once, and the weights are, bit for bit, those of a run in which each iteration was done from the start by
the team that did it.

usage: elastic_ranks_test.py ELASTIC_RANK              what scripts/test runs
       elastic_ranks_test.py ELASTIC_RANK every        every rank at every place
       elastic_ranks_test.py ELASTIC_RANK random COUNT [SEED]
       elastic_ranks_test.py ELASTIC_RANK time [RANKS] seconds without progress after a loss
"""
import collections
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 120
# In the order in which an iteration comes by; the last three end a window.
PLACES = ("forward", "tail", "exchanged", "stepped", "round", "evaluating", "saving")


class Job:
    """So many ranks; those in `ends` end themselves: {rank: (place, iteration)}."""

    def __init__(self, program, work, ends=None, timeout_s=20, ranks=4, meet=None):
        self.program, self.work, self.timeout_s, self.ranks = program, work, timeout_s, ranks
        self.meet = meet or {"DYNAMIX_STORE": work / "store"}  # where ranks find each other at the start
        self.started, self.restarts = {}, {}
        self.strangers = set()  # ranks whose log may tell of iterations that the others did anew
        for rank in range(ranks):
            self.start(rank, (ends or {}).get(rank))

    def start(self, rank, end=None):
        """Starts the rank, or starts it again."""
        self.restarts[rank] = self.restarts.get(rank, -1) + 1
        place = {"RANK": rank, "WORLD_SIZE": self.ranks, "LOCAL_RANK": rank, "DYNAMIX_RESTARTS": self.restarts[rank],
                 "OMP_NUM_THREADS": 1, "ELASTIC_TIMEOUT_S": self.timeout_s, **self.meet}
        words = [self.program, "run", str(self.log(rank)), str(self.work / "stop"), *map(str, end or ())]
        self.started[rank] = subprocess.Popen(words, env={**os.environ, **{name: str(value) for name, value in place.items()}},
                                              stderr=subprocess.PIPE, text=True)

    def log(self, rank):
        return self.work / f"log{rank}.{self.restarts[rank]}"

    def lines(self, rank):
        path = self.log(rank)
        return path.read_text().splitlines() if path.exists() else []

    def wait(self, what):
        start = time.monotonic()
        while not what():
            assert time.monotonic() - start < PATIENCE_S, "nothing happens"
            time.sleep(0.002)

    def wait_for_iterations(self, rank, more):
        until = len(self.lines(rank)) + more
        self.wait(lambda: len(self.lines(rank)) >= until or self.started[rank].poll() is not None)

    def wait_for_end(self, *ranks):
        self.wait(lambda: all(self.started[rank].poll() is not None for rank in ranks))

    def kill(self, rank, how=signal.SIGKILL):
        self.started[rank].send_signal(how)
        if how == signal.SIGKILL:
            self.started[rank].communicate()

    def others(self, *lost):
        return [rank for rank in range(self.ranks) if rank not in lost]

    def finish(self, survivors):
        """Lets the job end; checks exit codes, samples and weights. Returns the sizes of its teams, in order."""
        (self.work / "stop").touch()
        for rank, process in self.started.items():
            errors = "" if process.stderr.closed else process.communicate(timeout=PATIENCE_S)[1]
            expected = 0 if rank in survivors else -signal.SIGKILL
            assert process.returncode == expected, (rank, process.returncode, errors)
        logs = {path.name: path.read_text().splitlines() for path in self.work.glob("log*")}
        ended = {name: lines for name, lines in logs.items() if lines and lines[-1].startswith("weights")}
        assert len(ended) == len(survivors), (survivors, list(ended))
        weights = {lines[-1].split()[1] for lines in ended.values()}
        assert len(weights) == 1, f"ranks ended with different weights: {weights}"
        teams = self.ledger(logs, ended)
        (self.work / "teams").write_text("".join(" ".join(map(str, batches)) + "\n" for batches in teams))
        reference = subprocess.run([self.program, "reference", str(self.work / "teams")], check=True, timeout=PATIENCE_S,
                                   stdout=subprocess.PIPE, text=True).stdout.strip()
        assert reference in weights, f"weights {weights}, those of the reference are {reference}"
        return [len(batches) for i, batches in enumerate(teams) if i == 0 or len(batches) != len(teams[i - 1])]

    def ledger(self, logs, ended):
        """Every iteration once, each from where the one before it ended. Returns the batches of each."""
        done, ends = collections.defaultdict(collections.Counter), {}
        for name, lines in logs.items():
            # What ranks say that lived to the end counts more: one that was lost may have been alone with its last step.
            trust = 1000 if name in ended and int(name[3]) not in self.strangers else 1
            for words in (line.split() for line in lines if not line.startswith("weights")):
                if words[-1] == "own":
                    done[int(words[0])][int(words[1]), tuple(map(int, words[2:-1]))] += trust
                elif words[-1] == "taken":
                    ends[int(words[0])] = int(words[1])
        teams, cursor = [], 0
        last = max(int(line.split()[0]) for lines in ended.values() for line in lines[:-1])
        for iteration in range(1, last + 1):
            # A rank that is lost between the step and the end of its window leaves others who speak of the next team.
            end, batches = done[iteration].most_common(1)[0][0] if done[iteration] else (ends[iteration], teams[-1])
            assert end == cursor + sum(batches), (iteration, cursor, end, batches)
            cursor = end
            teams.append(batches)
        return teams

    def close(self):
        for process in self.started.values():
            process.kill()
            if not process.stderr.closed:
                process.communicate()


def killed_one_by_one(start, ends):
    """Ranks end at their places, each from its iteration on; the last one is left alone."""
    job = start(ends)
    job.wait_for_end(*ends)
    survivors = job.others(*ends)
    job.wait_for_iterations(survivors[-1], 10)
    assert job.finish(survivors) == list(range(4, 3 - len(ends), -1)), ends


def killed_at_every_place(start):
    killed_one_by_one(start, {0: ("forward", 12), 1: ("stepped", 32), 2: ("evaluating", 52)})
    killed_one_by_one(start, {3: ("tail", 12), 0: ("exchanged", 32)})
    killed_one_by_one(start, {0: ("round", 12), 2: ("saving", 32)})


def every_rank_killed_at_every_place(start):
    for place in PLACES:
        for rank in range(4):
            killed_one_by_one(start, {rank: (place, 12)})


def two_at_once(start):
    job = start({0: ("tail", 12), 3: ("forward", 12)})
    job.wait_for_end(0, 3)
    job.wait_for_iterations(1, 10)
    assert job.finish([1, 2])[-1] == 2


def host_of_the_store_lost(start):
    """Ranks that met at rank 0's port, as those of several machines do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = start({0: ("tail", 12)}, meet={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
    job.wait_for_end(0)
    job.wait_for_iterations(1, 10)
    job.kill(1)
    job.wait_for_iterations(3, 10)
    assert job.finish([2, 3]) == [4, 3, 2]


def lost_while_others_recover(start):
    """Rank 1 was in the team after rank 2, and ends before it said how far it is."""
    job = start({2: ("tail", 12), 1: ("formed", 12)})
    job.wait_for_end(2, 1)
    job.wait_for_iterations(0, 10)
    assert job.finish([0, 3])[-1] == 2


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
    assert job.finish(job.others()) == [4, 3, 4]


def stopped_while_all_others_were_replaced(start):
    """Everybody whom rank 2 knew has ended, and the job goes on: rank 2 does not begin another one."""
    job = start(timeout_s=4)
    job.strangers.add(2)
    job.wait_for_iterations(0, 10)
    job.kill(2, signal.SIGSTOP)
    job.wait_for_iterations(0, 10)
    job.kill(3)
    job.wait_for_iterations(0, 5)
    job.start(3)
    job.wait_for_iterations(3, 5)
    job.kill(0)
    job.kill(1)
    job.wait_for_iterations(3, 5)
    job.kill(2, signal.SIGCONT)
    job.wait(lambda: len(job.lines(3)[-1].split()) == 5)  # two batches
    job.wait_for_iterations(3, 5)
    assert job.finish([2, 3])[-2:] == [1, 2]


def started_again(start):
    job = start({0: ("tail", 12)})
    job.wait_for_end(0)
    job.wait_for_iterations(2, 10)
    job.start(0)
    job.wait_for_iterations(0, 15)
    assert job.finish(job.others()) == [4, 3, 4]


def lost_while_another_joins(start):
    """Rank 1 has the state for rank 0, and ends before it gave it away."""
    job = start({0: ("tail", 12), 1: ("state", 13)})
    job.wait_for_end(0)
    job.wait_for_iterations(2, 10)
    job.start(0)
    job.wait_for_iterations(0, 15)
    assert job.finish(job.others(1))[-1] == 3


def random_schedule(seed):
    def run(start):
        """Kills, also of two at once; ranks that come back, also while another one is lost; pauses."""
        draw = random.Random(seed)
        job = start()
        lost = set()
        for _ in range(draw.randrange(2, 6)):
            # Somebody who has the job's state stays.
            having = [rank for rank in job.others(*lost) if job.lines(rank)]
            action = draw.choice(("kill", "kill", "kill two", "start", "start", "pause"))
            if action.startswith("kill") and len(having) > 1:
                for rank in draw.sample(having, min(len(having) - 1, 2 if action == "kill two" else 1)):
                    job.kill(rank)
                    lost.add(rank)
            elif action == "start" and lost:
                rank = draw.choice(sorted(lost))
                job.start(rank)
                lost.remove(rank)
            elif action == "pause" and having:
                rank = draw.choice(having)
                job.kill(rank, signal.SIGSTOP)
                time.sleep(draw.random() * 0.1)
                job.kill(rank, signal.SIGCONT)
            keeper = next(rank for rank in job.others(*lost) if rank in having or not having)
            job.wait_for_iterations(keeper, draw.randrange(0, 15))
            time.sleep(draw.random() * 0.01)
        for rank in job.others(*lost):
            job.wait(lambda: job.lines(rank) or job.started[rank].poll() is not None)
        keeper = job.others(*lost)[0]
        job.wait_for_iterations(keeper, 10)
        sizes = job.finish(job.others(*lost))
        assert sizes[-1] == job.ranks - len(lost), (lost, sizes)
    run.__name__ = f"random_schedule({seed})"
    return run


def without_progress(ranks):
    def run(start):
        """From the kill to the first iteration of the smaller team."""
        seconds = []
        for lost in (0, ranks // 2, ranks - 1) * 3:
            job = start(ranks=ranks)
            keeper = job.others(lost)[0]
            job.wait_for_iterations(keeper, 10)
            job.kill(lost)
            killed = time.monotonic()
            job.wait(lambda: len(job.lines(keeper)[-1].split()) - 3 == ranks - 1)
            seconds.append(time.monotonic() - killed)
            job.wait_for_iterations(keeper, 5)
            job.finish(job.others(lost))
        print(f"{ranks} ranks, {len(seconds)} losses: median {statistics.median(seconds):.3f} s, most {max(seconds):.3f} s")
    run.__name__ = "without_progress"
    return run


def chosen(words):
    if not words:
        return [killed_at_every_place, two_at_once, host_of_the_store_lost, lost_while_others_recover, until_one_is_left,
                stopped_and_continued, stopped_while_all_others_were_replaced, started_again, lost_while_another_joins,
                random_schedule(1), random_schedule(2)]
    if words[0] == "every":
        return [every_rank_killed_at_every_place]
    if words[0] == "random":
        first = int(words[2]) if len(words) > 2 else 1
        return [random_schedule(seed) for seed in range(first, first + int(words[1]))]
    if words[0] == "time":
        return [without_progress(int(words[1]) if len(words) > 1 else 8)]
    sys.exit(__doc__)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    for check in chosen(sys.argv[2:]):
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
        except BaseException:
            print(f"FAILED {check.__name__}", flush=True)
            raise
        finally:
            for job in jobs:
                job.close()
            for folder in folders:
                folder.cleanup()
        print(f"ok     {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
