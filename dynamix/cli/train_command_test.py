#!/usr/bin/env python3
"""dynamix train and launch with real processes: a killed rank ends the others with an error; kill -9 and SIGTERM, then
--resume, end with the same bits as a run that was left alone.

usage: train_command_test.py DYNAMIX FASHION_MNIST_FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import PACED, first_in_time, workload  # noqa: E402

RANKS = 2
WORKLOAD = workload(optimizer='rule = "adascale"')


def command(program, folder, work, *more, timeout_s=60):
    return [program, "train", "--backend", "live", "--workers", str(RANKS), "--workload", str(work / "small.toml"),
            "--cluster", str(work / "paced.toml"), "--window", "5", "--checkpoint-every", "2", "--evaluate-every", "10",
            "--timeout", str(timeout_s), "--data", sys.argv[2], "--run", str(folder), "--json", *more]


def weights(folder):
    """The parameters in a checkpoint (layout: dynamix/training/checkpoint.h)."""
    data = (folder / "checkpoint.bin").read_bytes()
    length = struct.unpack_from("<Q", data, 8)[0]
    header = json.loads(data[16:16 + length])
    begin = 16 + length + 8 * (4 * header["ranks"] + 2 + 4 + 8 + 5)
    return data[begin:begin + 4 * header["parameters"]]


def rounds(folder):
    try:
        return len((folder / "rounds.jsonl").read_text().splitlines())
    except FileNotFoundError:
        return 0


def ranks_of(process):
    """Process ids of the launcher's ranks."""
    pids = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == process.pid:
                pids.append(int(stat.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return sorted(pids)


def interrupted(program, folder, work, lines, interfere, *more, timeout_s=60):
    """Runs a job and interferes, given the process and its ranks, once so many rounds are written. Exit code and errors."""
    def attempt(_):
        shutil.rmtree(folder, ignore_errors=True)
        process = subprocess.Popen(command(program, folder, work, *more, timeout_s=timeout_s), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while rounds(folder) < lines and process.poll() is None:
            time.sleep(0.005)
        pids = ranks_of(process)
        if len(pids) == RANKS:
            interfere(process, pids)
        _, errors = process.communicate(timeout=200)
        expect_gone(pids)
        in_time = process.returncode != 0 and not (folder / "summary.json").exists()
        return (process.returncode, errors) if in_time else None

    return first_in_time(attempt)


def kill_a_rank(process, pids):
    try:
        os.kill(pids[1], signal.SIGKILL)
    except ProcessLookupError:
        pass


def ask_everybody_twice(process, pids):
    """As Slurm or systemd do: the launcher gets the signal and passes it on to ranks that had it already."""
    for pid in [process.pid, *pids, *pids]:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass


def expect_gone(pids):
    for pid in pids:
        assert not pathlib.Path(f"/proc/{pid}/cmdline").exists(), f"process {pid} is left"


def resume(program, folder, work):
    done = subprocess.run(command(program, folder, work, "--resume"), stdout=subprocess.PIPE, check=True, timeout=200)
    return json.loads(done.stdout)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(WORKLOAD)
        (work / "paced.toml").write_text(PACED)

        alone = subprocess.run(command(program, work / "alone", work), stdout=subprocess.PIPE, check=True, timeout=200)
        summary = json.loads(alone.stdout)
        assert summary["windows"] == 30 and rounds(work / "alone") == 30, summary
        for file in ("config.toml", "summary.json", "report.html"):
            assert (work / "alone" / file).stat().st_size > 0

        # A killed rank: the other ends with an error, the launcher with the signal's code, nobody hangs.
        code, errors = interrupted(program, work / "killed", work, 5, kill_a_rank)
        assert code in (128 + signal.SIGKILL, 1), (code, errors)
        assert "lost rank 1" in errors or "ended with signal 9" in errors, errors
        resume(program, work / "killed", work)
        assert weights(work / "killed") == weights(work / "alone"), "kill -9 and resume: other weights"
        assert rounds(work / "killed") == 30

        # SIGTERM: all ranks save together.
        code, errors = interrupted(program, work / "stopped", work, 5, ask_everybody_twice)
        assert code == 128 + signal.SIGTERM, (code, errors)
        assert "--resume" in errors, errors
        before = rounds(work / "stopped")
        refused = subprocess.run(command(program, work / "stopped", work), stderr=subprocess.PIPE, text=True, timeout=200)
        assert refused.returncode == 2 and "not finished: go on with it with --resume" in refused.stderr, refused
        resume(program, work / "stopped", work)
        assert 5 <= before < 30 and rounds(work / "stopped") == 30
        assert weights(work / "stopped") == weights(work / "alone"), "SIGTERM and resume: other weights"

        # Another job's checkpoint is refused as bad input.
        other = command(program, work / "stopped", work, "--resume", "--seed", "2")
        refused = subprocess.run(other, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
        assert refused.returncode == 2 and "this job is" in refused.stderr, refused

        check_changed(program, work)
        check_counts(program, work)
        check_evaluation(program, work)


def check_changed(program, work):
    """A job that is trained otherwise is not resumed; both values are named."""
    changed = command(program, work / "stopped", work, "--resume", "--learning-rate", "0.01", "--rule", "sqrt", "--samples", "4800")
    refused = subprocess.run(changed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
    assert refused.returncode == 2, refused
    for name, now, before in (("learning_rate", "0.01", "0.05"), ("rule", "sqrt", "adascale"), ("planned_samples", "4.8e+03", "2.4e+03")):
        change = rf"{name} = '?{re.escape(now)}'? \(the checkpoint has '?{re.escape(before)}'?\)"
        assert re.search(change, refused.stderr), (change, refused.stderr)
    subprocess.run([*changed, "--allow-changed"], stdout=subprocess.PIPE, check=True, timeout=200)
    assert rounds(work / "stopped") == 60, "it went on to twice the samples"


def check_counts(program, work):
    """Who started the ranks knows how many there are, also when it is one."""
    job = [program, "train", "--backend", "live", "--workload", str(work / "small.toml"), "--data", sys.argv[2],
           "--no-record", "--json"]
    place = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
    alone = subprocess.run(job, stdout=subprocess.PIPE, check=True, timeout=200, env=place)
    assert json.loads(alone.stdout)["workers"] == 1, alone.stdout
    for more, reason in ((["--workers", "3"], "--workers = 3 is not allowed: expected 2"),
                         (["--resume"], "--resume is for --backend live with a run folder")):
        refused = subprocess.run(job + more, stderr=subprocess.PIPE, text=True, timeout=200,
                                 env={**place, "WORLD_SIZE": "2"})
        assert refused.returncode == 2 and reason in refused.stderr, refused


def check_evaluation(program, work):
    """dynamix evaluate --backend virtual: every policy and static size on the same real job; recorded runs are whole."""
    suite = work / "suite.toml"
    suite.write_text("sample_budget = 1\n" + PACED)
    easy = {"0.99": "0.75", "2400": "9600", "0.05": "0.02", "width = 0.1": "width = 0.3", "adascale": "none"}
    text = WORKLOAD
    for old, new in easy.items():
        text = text.replace(old, new)
    (work / "easy.toml").write_text(text)
    done = subprocess.run([program, "evaluate", "--backend", "virtual", "--suite", str(suite), "--workloads",
                           str(work / "easy.toml"), "--workers", "2", "--seeds", "2", "--policies", "static,balanced",
                           "--data", sys.argv[2], "--record", str(work / "recorded"), "--json"],
                          stdout=subprocess.PIPE, check=True, timeout=200)
    results = json.loads(done.stdout)["results"]
    runs = {(r["policy"], r["seed"]): r for r in results}
    sizes = ["static"] + [f"static:{size}" for size in (16, 32, 64, 128, 256)]
    assert {policy for policy, _ in runs} == {*sizes, "balanced", "best_static"}, runs.keys()
    for seed in (1, 2):
        best = runs["best_static", seed]
        assert best["reached"] and best["time_to_target_s"] in [runs[p, seed]["time_to_target_s"] for p in sizes], best
        # One window of 20 is all the planned samples allow; the miss counts with the whole budget.
        missed = runs["static:256", seed]
        assert not missed["reached"] and missed["time_to_target_s"] > best["time_to_target_s"], missed
        folder = work / "recorded" / f"suite-easy-2-{seed}-balanced"
        assert rounds(folder) == json.loads((folder / "summary.json").read_text())["windows"]


if __name__ == "__main__":
    main()
