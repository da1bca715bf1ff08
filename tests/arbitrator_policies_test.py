#!/usr/bin/env python3
"""The policy of a running arbitrator is swapped, replaced, broken or learning, and jobs meet two arbitrators or their own
second run, with real processes.

usage: arbitrator_policies_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_faults import expect_same, finish_advised, main  # noqa: E402
from arbitrator_processes import SAMPLES, Arbitrator, Job, wait_until  # noqa: E402


def learns_online_and_survives(place, wanted):
    """--learn: killed in the middle, it goes on after the last update; a torn checkpoint costs one update."""
    folder = place.folder / "learning"
    flags = ["--learn", "--learn-steps", "4", "--no-guard", "--run", str(folder)]
    with Arbitrator(place, policy="default", flags=flags) as arbitrator:
        job = Job(place, arbitrator.address, samples=40000)
        learner = folder / "job/learner/learner.safetensors"
        job.until(lambda: learner.exists() and (folder / "job/learner/policy.safetensors").exists())
        arbitrator.end(signal.SIGKILL)
        arbitrator.start("default")
        arbitrator.until_event("learner_restored", "goes on after update")
        arbitrator.until_event("learned")
        result = job.finish()
        arbitrator.end(signal.SIGKILL)
        learner.write_bytes(learner.read_bytes()[:1000])
        arbitrator.start("default")
        again = finish_advised(Job(place, arbitrator.address, pace_ms=2))
        arbitrator.until_event("learner_restored", "learner.safetensors")
    assert result["samples"] >= 40000 and result["advised"] > 0, result
    assert again["samples"] >= SAMPLES and again["advised"] > 0, again


def two_arbitrators(place, wanted):
    """The old one is stopped, a new one takes over, the old one wakes up: it is fenced by its epoch."""
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as old, \
            Arbitrator(place, policy="static:24", flags=["--no-guard"]) as new:
        assert new.hello["epoch"] > old.hello["epoch"]
        job = Job(place, f"{old.address},{new.address}")
        job.until_more("advised")
        old.send(signal.SIGSTOP)
        job.until_batches(24, 24, 24, 24)
        new.send(signal.SIGSTOP)
        old.send(signal.SIGCONT)
        old.until_event("refused")  # it was asked and knew that it is stale
        new.send(signal.SIGCONT)
        result = finish_advised(job)
    assert result["batches"] == [24] * 4, result
    assert result["lowest"] == 16 and result["samples"] >= SAMPLES, result


def two_trainings_of_one_name(place, wanted):
    """The second is refused while the first runs, and advised when it has ended."""
    with Arbitrator(place) as arbitrator:
        first = Job(place, arbitrator.address, run=111)
        first.until_more("advised")
        second = Job(place, arbitrator.address, run=222)
        second.until_more("failed")
        arbitrator.until_event("refused", "another run of job job")
        first.until_more("advised")
        expect_same(first.finish(), wanted)
        expect_same(finish_advised(second), wanted)


def restarted_with_another_policy(place, wanted):
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        arbitrator.end()
        arbitrator.start("static:32")
        job.until_batches(32, 32, 32, 32)
        result = job.finish()
    assert result["batches"] == [32] * 4 and result["samples"] >= SAMPLES, result


def policy_swapped(place, wanted):
    """By SIGHUP (the same file again) and by RPC, without losing a round."""
    flags = ["--no-guard", "--run", str(place.folder / "swapped")]
    with Arbitrator(place, flags=flags, round_deadline=50, lease=100) as arbitrator:
        job = Job(place, arbitrator.address, timeout=60, hold=0)  # each window is answered before the next
        job.at_window(3)
        arbitrator.send(signal.SIGHUP)
        arbitrator.until_event("policy_swapped")
        job.at_window(job.windows + 3)
        swap = [place.dynamix, "arbitrator", "--listen", arbitrator.address, "--swap"]
        subprocess.run([*swap, "static:24"], check=True, stdout=subprocess.DEVNULL)
        refused = subprocess.run([*swap, "nonsense"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert refused.returncode == 1 and "nonsense" in refused.stdout, refused
        job.until_batches(24, 24, 24, 24)
        held = job.windows
        result = job.finish()
        arbitrator.end()
        rounds = [json.loads(line) for line in (place.folder / "swapped/job/rounds.jsonl").read_text().splitlines()]
        assert len(arbitrator.events("policy_swapped")) == 2, arbitrator.log
    assert result["batches"] == [24] * 4 and result["failed"] == 0, result
    windows = [line["round"] for line in rounds]
    assert windows[:held - 1] == list(range(held - 1)), (held, windows)
    assert all(None not in line["reports"] and len(line["reports"]) == 4 for line in rounds[:held - 1]), rounds


def policy_file_that_cannot_be_read(place, wanted):
    """SIGHUP while the policy's path is a loop of links, a folder, a pipe, or nothing: the policy in force stays."""
    policy = place.folder / "policy.safetensors"
    policy.symlink_to(place.source / "policies/default.safetensors")
    with Arbitrator(place, policy=str(policy)) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        for number, make in enumerate((lambda: policy.symlink_to(policy), policy.mkdir, lambda: os.mkfifo(policy), lambda: None), 1):
            policy.rmdir() if policy.is_dir() else policy.unlink()
            make()
            arbitrator.send(signal.SIGHUP)
            wait_until(lambda: len(arbitrator.events("policy_kept")) == number, lambda: arbitrator.log)
            job.until_more("advised")
        job.finish()
        assert arbitrator.end() == 0


if __name__ == "__main__":
    main([learns_online_and_survives, two_arbitrators, two_trainings_of_one_name, restarted_with_another_policy,
          policy_swapped, policy_file_that_cannot_be_read], __doc__)
