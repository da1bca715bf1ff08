#!/usr/bin/env python3
"""A disk that is full while `dynamix train` records, with real processes and a real file system (a small tmpfs): training
goes on, files hold whole lines or are absent, what is lost is counted and told, and the exit code is 74.

usage: full_disk_test.py DYNAMIX FASHION_MNIST_FOLDER      (exit code 77: skipped)
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
from small_job import PACED, first_in_time, workload  # noqa: E402

RECORD_LOST = 74
DISK_KIB = 4096
WORKLOAD = workload(planned_samples=6400)  # 400 iterations of 16 samples: 80 windows, 4 s at least
WINDOWS = 80


def own_mounts():
    """Enters a mount namespace of its own, so that no mount outlives the test; or says why not, and skips."""
    if os.environ.get("DYNAMIX_OWN_MOUNTS"):
        return
    tried = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.PIPE, text=True)
    if tried.returncode != 0:
        print(f"skipped: mounting a small disk needs root ({tried.stderr.strip()})")
        sys.exit(77)
    os.environ["DYNAMIX_OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


class Disk:
    """A small disk that can be filled and emptied."""

    def __init__(self, folder):
        self.folder = folder
        self.filler = folder / "filler"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_KIB}k", "tmpfs", str(folder)], check=True)

    def fill(self):
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def empty(self):
        self.filler.unlink()

    def unmount(self):
        subprocess.run(["umount", str(self.folder)], check=True)


def start(program, backend, work, folder):
    return subprocess.Popen(
        [program, "train", "--backend", backend, "--workers", "2", "--workload", str(work / "small.toml"), "--cluster",
         str(work / "paced.toml"), "--testbed", "plain", "--monitor", "none", "--window", "5", "--checkpoint-every", "20",
         "--evaluate-every", "40", "--held-out", "200", "--data", sys.argv[2], "--run", str(folder), "--json"],
        stdout=subprocess.PIPE, stderr=open(work / "errors", "w"), text=True)


def lines(folder):
    """The rounds of a folder. Every line must be whole."""
    try:
        text = (folder / "rounds.jsonl").read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line)["round"] for line in text.splitlines()]


def wait(process, happened):
    """False when the process ended first."""
    while not happened():
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    return True


def full_for_a_while(program, work):
    """The disk is full for some windows in the middle of a live job."""
    def attempt(number):
        disk = Disk(work / f"while{number}")
        folder = disk.folder / "run"
        try:
            process = start(program, "live", work, folder)
            complete = lambda: (folder / "rounds.jsonl").exists() and (folder / "rounds.jsonl").read_text().count("\n") >= 5
            told = lambda: "rounds are lost" in (work / "errors").read_text()
            in_time = wait(process, complete)
            disk.fill()
            in_time = in_time and wait(process, told)
            disk.empty()
            output, _ = process.communicate(timeout=200)
            errors = (work / "errors").read_text()
            if not in_time:
                return None
            kept, summary = lines(folder), json.loads((folder / "summary.json").read_text())
            if summary["lost_rounds"] == WINDOWS - 5 or kept[-1] != WINDOWS - 1:
                return None  # emptied after the last round: no trial
            assert summary["windows"] == WINDOWS, summary
            assert 0 < summary["lost_rounds"] == WINDOWS - len(kept), (summary, kept)
            assert json.loads(output) == summary
            assert kept == sorted(set(kept)), kept
            assert process.returncode == RECORD_LOST, (process.returncode, errors)
            rounds = "1 round" if summary["lost_rounds"] == 1 else f"{summary['lost_rounds']} rounds"
            assert f"{rounds} could not be recorded" in errors, errors
            assert f"{summary['lost_rounds']} rounds of" in (folder / "report.html").read_text()
            assert not list(folder.glob("*.writing*")), "what was not finished is not left lying"
            return summary
        finally:
            disk.unmount()

    return first_in_time(attempt)


def full_to_the_end(program, work):
    """The disk is full from some window on, and stays so: no summary, no page, and whole lines."""
    def attempt(number):
        disk = Disk(work / f"end{number}")
        folder = disk.folder / "run"
        try:
            process = start(program, "virtual", work, folder)
            in_time = wait(process, lambda: (folder / "config.toml").exists())
            disk.fill()
            output, _ = process.communicate(timeout=200)
            errors = (work / "errors").read_text()
            if not in_time or process.returncode == 0 and len(lines(folder)) == WINDOWS:
                return None  # the run had ended
            assert process.returncode == RECORD_LOST, (process.returncode, errors)
            summary = json.loads(output)
            assert summary["lost_rounds"] + len(lines(folder)) == summary["windows"], summary
            assert "and the summary could not be recorded" in errors and "No space left" in errors, errors
            left = {path.name for path in folder.iterdir()}
            assert left <= {"config.toml", "rounds.jsonl"}, left
            return summary
        finally:
            disk.unmount()

    return first_in_time(attempt)


def nowhere_to_print(program):
    """What a command prints does not fit: it says so, whoever prints."""
    for words in (["list", "policies"], ["--help"], ["--version"], ["policy", "show", "default", "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([program, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "cannot write to standard output" in done.stderr, (words, done)


def main():
    own_mounts()
    program = str(pathlib.Path(sys.argv[1]).resolve())
    nowhere_to_print(program)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(WORKLOAD)
        (work / "paced.toml").write_text(PACED)
        for scene in (full_for_a_while, full_to_the_end):
            summary = scene(program, work)
            print(f"{scene.__name__}: {summary['lost_rounds']} of {summary['windows']:.0f} rounds lost, and told")


if __name__ == "__main__":
    main()
