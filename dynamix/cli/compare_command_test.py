#!/usr/bin/env python3
"""dynamix compare: an interrupted comparison goes on and repeats nothing, a changed job runs anew, a run that fails is
told; live and virtual.

usage: compare_command_test.py DYNAMIX FASHION_MNIST_FOLDER
"""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import PACED, first_in_time, workload  # noqa: E402


def compare(program, work, *more):
    command = [program, "compare", "--workload", str(work / "small.toml"), "--cluster", str(work / "nodes.toml"), "--data",
               sys.argv[2], "--run", str(work / "all"), "--window", "5", "--evaluate-every", "2", "--checkpoint-every", "2",
               *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process, code=0):
    out, errors = process.communicate(timeout=200)
    assert process.returncode == code, (process.returncode, out, errors)
    return out, errors


def interrupted(program, work, live):
    """Interrupts a comparison in its second run; its errors."""
    def attempt(_):
        shutil.rmtree(work / "all", ignore_errors=True)
        process = compare(program, work, *live)
        second = work / "all" / "balanced-1"
        rounds = second / "rounds.jsonl"
        while process.poll() is None and not (rounds.exists() and len(rounds.read_text().splitlines()) >= 4):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=200)
        assert process.returncode in (0, 130), (process.returncode, out, errors)
        return errors if process.returncode == 130 and not (second / "summary.json").exists() else None

    return first_in_time(attempt)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(workload(planned_samples=4000, accuracy=0.5))
        (work / "nodes.toml").write_text(PACED)
        # --no-guard: a flag without a value is handed on as it was given.
        live = ("--policies", "static:8,balanced", "--epochs", "0.05", "--no-guard")

        # Interrupted in the second run; the same command goes on with it and leaves the first alone.
        errors = interrupted(program, work, live)
        assert "the same command goes on" in errors and "--resume" not in errors, errors
        first = (work / "all" / "static-8-1" / "summary.json").stat().st_mtime_ns
        out, errors = finish(compare(program, work, *live))
        assert "static:8, seed 1 is there already" in errors and "balanced, seed 1 goes on" in errors, errors
        assert (" won: " in out or "no clear winner: " in out) and "batches at the start" in out, out
        assert (work / "all" / "static-8-1" / "summary.json").stat().st_mtime_ns == first
        assert 'id="data"' in (work / "all" / "report.html").read_text()
        summary = json.loads((work / "all" / "balanced-1" / "summary.json").read_text())
        assert 3000 <= summary["samples"] < 3100 and summary["overhead_share"] > 0, summary

        # Another cluster under the same name is another job.
        (work / "nodes.toml").write_text(PACED.replace("10", "1"))
        more = ("--backend", "virtual", "--policies", "goodput", "--target", "0.4", "--seeds", "2", "--json")
        done = json.loads(finish(compare(program, work, *more))[0])
        assert len(done["runs"]) == 2 and done["policies"][0]["runs"] == 2, done
        assert all(run["summary"]["accuracy"] >= 0.4 for run in done["runs"]), done
        before = (work / "all" / "goodput-2" / "rounds.jsonl").stat().st_mtime_ns
        finish(compare(program, work, *more))
        assert (work / "all" / "goodput-2" / "rounds.jsonl").stat().st_mtime_ns == before
        (work / "nodes.toml").write_text(PACED.replace("10", "2"))
        finish(compare(program, work, *more))
        assert (work / "all" / "goodput-2" / "rounds.jsonl").stat().st_mtime_ns > before

        # A start for everybody but static:N; base begins at the base batch of 16.
        started = ("--backend", "sim", "--policies", "static:4,static,base", "--start-batch", "32", "--epochs", "1", "--json")
        done = json.loads(finish(compare(program, work, *started))[0])
        first = {run["policy"]: run["summary"]["first_batches"] for run in done["runs"]}
        assert first == {"static:4": [4, 4], "static": [32, 32], "base": [8, 8]}, first

        # A run that fails is told.
        diverging = compare(program, work, "--policies", "static", "--learning-rate", "900", "--epochs", "0.02", "--timeout",
                            "20")
        out, errors = finish(diverging, 1)
        assert "runs failed" in errors and "failed" in out, (out, errors)

        # Bad input.
        assert "at most one" in finish(compare(program, work, "--time", "1", "--epochs", "1"), 2)[1]
        assert "--policies" in finish(compare(program, work, "--policies", ","), 2)[1]
        assert "no_such" in finish(compare(program, work, "--policies", "no_such"), 2)[1]


if __name__ == "__main__":
    main()
