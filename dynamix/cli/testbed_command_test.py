#!/usr/bin/env python3
"""dynamix train on a testbed, as root: reports carry eBPF and host metrics, events happen, workers leave and come back, ctrl-C
and kill -9 leave nothing that `dynamix testbed clean` does not remove. dynamix launch gives each rank a cgroup. Without root:
plain processes, and a line that says what is not emulated.

usage: testbed_command_test.py DYNAMIX FASHION_MNIST_FOLDER
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import workload  # noqa: E402

CLUSTER = """
start_batch = 8
clock = "seconds"
time_budget = 100
[[node]]
overhead_ms = 4
bandwidth_mbps = 50
latency_ms = 2
jitter = 0
[[event]]
kind = "slowdown"
target = "fastest"
share = 0.1
at = 1
duration = 100
factor = 10
"""
LEAVE = """
[[event]]
kind = "leave"
target = "fastest"
share = 0.3
at = 1
duration = 1
"""


def command(program, work, folder, *more):
    return [program, "train", "--backend", "live", "--workload", str(work / "small.toml"), "--cluster",
            str(work / "nodes.toml"), "--window", "5", "--data", sys.argv[2], "--run", str(folder), "--timeout", "60",
            *more]


def cgroups():
    found = set()
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"):
        found |= set(pathlib.Path(root).glob("dynamix-*"))
    return found


def of(process):
    """Cgroups of that process's testbed or launch."""
    return [path for path in cgroups() if path.name.endswith(f"-{process.pid}")]


def lines(folder):
    """What is written so far; without the line being written just now."""
    path = folder / "rounds.jsonl"
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def check_run(program, work):
    # A busy machine adds to the times below, so that only the least of a run is the testbed's; a longer run has a lesser one.
    for seconds in (2.5, 10, 40):
        folder = work / f"run-{seconds}"
        done = subprocess.run(command(program, work, folder, "--workers", "8", "--time", str(seconds)), capture_output=True,
                              text=True, timeout=240)
        assert done.returncode == 0, done
        rounds = lines(folder)
        # The fastest node (the first of equals) computes 10 times as long from second 1 on: 44 ms instead of 8.
        slowed = [r["reports"][0]["compute_ms"] for before, r in zip(rounds, rounds[1:]) if before["seconds"] > 1.5]
        others = [r["reports"][1]["compute_ms"] for r in rounds]
        # Rank 0 talks to itself as well, without a network between.
        least_rtt_us = [min(r["reports"][rank]["network"]["minimum_rtt_us"] for r in rounds) for rank in range(1, 8)]
        if slowed and min(others) < 20 and max(least_rtt_us) < 30000:
            break
    assert slowed and min(slowed) > 40 and min(others) < 20, (slowed, others)
    assert 4000 <= min(least_rtt_us) and max(least_rtt_us) < 30000, least_rtt_us  # 2 ms each way
    assert "8 nodes in network namespaces" in done.stderr, done.stderr
    for report in rounds[-1]["reports"]:
        network, host = report["network"], report["host"]
        assert network["tier"] == 4 and network["bytes_sent"] > 1000, report
        assert host["cpu_use"] > 0 and host["memory_limit_bytes"] > host["memory_used_bytes"] > 0, report
    summary = json.loads((folder / "summary.json").read_text())
    assert seconds <= summary["seconds"] and summary["events"][0]["kind"] == "slowdown", summary
    assert 0 < summary["overhead_share"] < 1 and summary["pace_ratio"] > 0.9, summary


def check_interrupt(program, work):
    folder = work / "stopped"
    process = subprocess.Popen(command(program, work, folder, "--workers", "2"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(lines(folder)) >= 2, process)
    assert len(of(process)) == 1, cgroups()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGINT and "--resume" in errors, (process.returncode, errors)
    assert not of(process), of(process)


def check_leave(program, work):
    """The first of three workers leaves and comes back; training goes on meanwhile."""
    (work / "nodes.toml").write_text(CLUSTER + LEAVE)
    folder = work / "leave"
    process = subprocess.Popen(command(program, work, folder, "--workers", "3"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)

    def teams():
        """How many workers were there, whenever that changed."""
        sizes = [sum(report is not None for report in line["reports"]) for line in lines(folder)]
        return [size for before, size in zip([None] + sizes, sizes) if size != before]

    wait_for(lambda: teams()[-2:] == [2, 3], process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=200)
    (work / "nodes.toml").write_text(CLUSTER)
    for sentence in ("workers that leave are killed", "rank 0 leaves, as its cluster says", "is now 2 of 3 workers: 1, 2",
                     "rank 0 comes back, as its cluster says", "is now 3 of 3 workers: 0, 1, 2"):
        assert sentence in errors, (sentence, errors)
    assert not of(process), of(process)


def launch_folder(process):
    """Where its ranks find each other."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                found = re.search(rb"DYNAMIX_STORE=([^\0]*)", (stat.parent / "environ").read_bytes())
                if found:
                    return pathlib.Path(found[1].decode()).parent
        except (FileNotFoundError, ProcessLookupError):
            pass
    raise AssertionError("no rank has a DYNAMIX_STORE")


def check_kill(program, work):
    folder = work / "killed"
    process = subprocess.Popen(command(program, work, folder, "--workers", "2"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(lines(folder)) >= 2, process)
    own = launch_folder(process)
    assert own.exists(), own
    subprocess.run([program, "testbed", "clean"], stdout=subprocess.DEVNULL, check=True)
    assert own.exists(), "the folder of a launcher that lives was removed"
    process.kill()
    process.communicate(timeout=200)
    cleaned = subprocess.run([program, "testbed", "clean", "--json"], capture_output=True, text=True, check=True)
    json.loads(cleaned.stdout)
    assert not of(process), (of(process), cleaned.stdout)
    assert not own.exists(), cleaned.stdout


def check_launch(program, work):
    done = subprocess.run([program, "launch", "-n", "2", "--", "cat", "/proc/self/cgroup"], capture_output=True, text=True)
    for rank in (0, 1):
        assert any(line.startswith(f"[{rank}] 0::") and f"/rank-{rank}" in line and "launch-" in line
                   for line in done.stdout.splitlines()), done.stdout


def check_container(program):
    """A launcher that counts its processes anew has a number that means nothing here; its rank lives on."""
    launch = f"echo 30000 > /proc/sys/kernel/ns_last_pid; {program} launch -n 1 -- sh -c 'echo started; read line; echo ended'; exit"
    inside = subprocess.Popen(["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--", "sh", "-c", launch],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert "started" in inside.stdout.readline()
    subprocess.run([program, "testbed", "clean"], check=True, stdout=subprocess.DEVNULL)
    said, _ = inside.communicate("\n", timeout=60)
    assert inside.returncode == 0 and "ended" in said, (inside.returncode, said)


def check_without_root(program, work):
    os.chmod(work, 0o777)

    def become_nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    done = subprocess.run(command(program, work, work / "nobody", "--workers", "2", "--epochs", "0.01"), capture_output=True,
                          text=True, timeout=200, preexec_fn=become_nobody if os.geteuid() == 0 else None, cwd=work)
    assert done.returncode == 0, done
    assert "not emulated: network namespaces need root" in done.stderr, done.stderr
    report = lines(work / "nobody")[1]["reports"][1]
    assert report["compute_ms"] > 4 and report["network"]["tier"] in (2, 3), report


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(workload(base_batch=24, planned_samples=1e6, more="[cost]\nsample_ms = 0.5"))
        (work / "nodes.toml").write_text(CLUSTER)
        try:
            check_without_root(program, work)
        except PermissionError:
            print("skipped: another user may not start the program where it was built")
        probe = subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL)
        if os.geteuid() != 0 or probe.returncode != 0:
            print("the rest needs root and a kernel that allows network namespaces")
            return
        check_run(program, work)
        check_interrupt(program, work)
        check_leave(program, work)
        os.environ["TMPDIR"] = str(work)  # a launcher that is killed leaves its folder there
        check_kill(program, work)
        check_launch(program, work)
        check_container(program)


if __name__ == "__main__":
    main()
