#!/usr/bin/env python3
"""Random schedules of faults against a real arbitrator and a real job. Whatever the schedule, what every rank did, said and
heard is a history that may be (history.py): planned samples trained exactly once, one answer per window, no advice outside of
its bounds or after its time, epochs and incarnations that go up. And while the policy is static, the job ends with the bits of
a job nobody advised.

usage: arbitrator_chaos_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [SCHEDULES [FIRST_SEED]]      (default 20, from seed 1)
A failed schedule prints its seed and what it did; run it again with  ... 1 SEED
"""
import concurrent.futures
import os
import pathlib
import random
import signal
import socket
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import history  # noqa: E402
from arbitrator_processes import SAMPLES, WINDOWS, Arbitrator, Job, Place, Relay, baseline  # noqa: E402


class Schedule:
    """One job, one arbitrator behind a relay, and a list of (window, fault) from a seed."""

    def __init__(self, place, seed):
        self.place = Place(place.dynamix, place.advised_job, place.source, place.folder / str(seed))
        self.random = random.Random(seed)
        self.steps = sorted((self.random.randrange(1, WINDOWS - 2), self.random.choice(list(FAULTS)))
                            for _ in range(self.random.randrange(2, 6)))
        self.policies = self.random.choice([("static", "static:16"), ("balanced", "goodput", "noise_scale")])
        self.sockets, self.histories, self.answers = [], [], 0

    def run(self, wanted):
        flags = ["--run", str(self.place.folder)] if self.random.random() < 0.5 else []
        flags += ["--no-guard"] if self.random.random() < 0.5 else []
        with Arbitrator(self.place, policy=self.random.choice(self.policies), flags=flags) as self.arbitrator:
            self.relay = Relay(self.arbitrator.port)
            slow = {"slow": f"{self.random.randrange(4)}:{self.random.randrange(1, 12)}"} if self.random.random() < 0.3 else {}
            self.flags = dict(pace_ms=self.random.choice([4, 8, 12]), timeout=self.random.choice([0.1, 0.3, 1.0]), breaker=0.1,
                              **slow)
            if self.policies[0] != "static":
                self.flags["hold"] = 3  # larger batches would end the job before its faults
            self.start_job()
            for window, fault in self.steps:
                self.job.at_window(window)
                FAULTS[fault](self)
            self.arbitrator.process.send_signal(signal.SIGCONT) if self.arbitrator.process.poll() is None else None
            result = self.job.finish()
            self.relay.close()
        for s in self.sockets:
            s.close()
        self.answers = history.check([history.read(path) for path in self.histories], SAMPLES)
        if self.policies[0] == "static":
            assert result["samples"] == wanted["samples"], (result, wanted)
            assert result["weights"] == wanted["weights"], ("other weights", result, wanted)

    def start_job(self):
        self.histories.append(self.place.folder / f"history{len(self.histories)}.jsonl")
        self.job = Job(self.place, self.relay.address, history=self.histories[-1], **self.flags)

    def crash(self):
        """The job's process dies; its next one starts anew."""
        self.job.kill()
        self.start_job()

    def kill(self):
        self.arbitrator.end(signal.SIGKILL)

    def restart(self):
        self.arbitrator.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        self.arbitrator.start(self.random.choice(self.policies))

    def stop(self):
        if self.arbitrator.process.poll() is None:
            self.arbitrator.send(signal.SIGSTOP)

    def resume(self):
        if self.arbitrator.process.poll() is None:
            self.arbitrator.send(signal.SIGCONT)

    def hang_up(self):
        if self.arbitrator.process.poll() is None:
            self.arbitrator.send(signal.SIGHUP)

    def cut(self):
        self.relay.cut()

    def black_hole(self):
        self.relay.black_hole = True

    def heal(self):
        self.relay.black_hole, self.relay.delay_s = False, 0.0

    def delay(self):
        self.relay.delay_s = self.random.choice([0.02, 0.2, 0.5])

    def noise(self):
        try:
            s = socket.create_connection(("127.0.0.1", self.arbitrator.port), timeout=1)
            s.sendall(os.urandom(self.random.randrange(1, 4000)))
            self.sockets.append(s)
        except OSError:
            pass


FAULTS = {name: getattr(Schedule, name)
          for name in ("kill", "restart", "stop", "resume", "hang_up", "cut", "black_hole", "heal", "delay", "noise", "crash")}


def run(place, wanted, seed):
    schedule = Schedule(place, seed)
    try:
        schedule.run(wanted)
        return seed, schedule, None
    except Exception:
        return seed, schedule, traceback.format_exc()
    finally:
        schedule.place.end_jobs()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    first = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    failed, answers, started = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        place = Place(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], name)
        wanted = baseline(place)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in concurrent.futures.as_completed(
                    [pool.submit(run, place, wanted, seed) for seed in range(first, first + count)]):
                seed, schedule, problem = done.result()
                answers += schedule.answers
                if problem:
                    failed += 1
                    print(f"FAILED seed {seed}: {schedule.policies[0]} {schedule.steps}\n{problem}", flush=True)
    print(f"{count} schedules from seed {first}, {answers} answers heard, {failed} failed, {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
