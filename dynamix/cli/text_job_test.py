#!/usr/bin/env python3
"""A transformer on a real text, to a held-out loss: dynamix train, compare and calibrate in sim, virtual and live.

usage: text_job_test.py DYNAMIX FETCH_TEXT
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
WORKLOAD = """
[model]
name = "transformer"
width = 0.25
dataset = "bible"
[optimizer]
kind = "adamw"
learning_rate = 0.01
weight_decay = 0.01
base_batch = 16
schedule = "warmup"
planned_samples = 2400
[convergence]
engine = "quadratic"
curvature = 300
initial_loss = 3.5
irreducible_loss = 2
[target]
loss = 3.1
"""
CLUSTER = "workers = 2\nstart_batch = 8\ntime_budget = 1000\n[[node]]\noverhead_ms = 1\n"


class Job:
    def __init__(self, program, work):
        self.program, self.work = program, work
        self.environment = {**os.environ, "DYNAMIX_DATASETS": str(work / "data")}

    def call(self, command, *more, code=0):
        """Standard output and errors of a dynamix command that ends with this code."""
        done = subprocess.run([self.program, command, *map(str, more)], cwd=self.work, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=250)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def train(self, *more, code=0):
        return self.call("train", "--workload", "text.toml", "--cluster", "nodes.toml", "--json", *more, code=code)

    def summary(self, *more):
        return json.loads(self.train(*more)[0])


def check_targets(job):
    """Every backend ends at the loss and says so."""
    for backend in ("sim", "virtual"):
        done = job.summary("--backend", backend, "--run", f"runs/{backend}")
        assert done["reached"] and done["loss"] <= 3.1 and done["target_loss"] == 3.1, done
        assert done["target_accuracy"] is None and done["samples"] < 2400, done
        page = (job.work / "runs" / backend / "report.html").read_text()
        assert '"target":{"by_loss":true,"value":3.1}' in page, "charts are of the loss, with its target"
        # The page finds the moment by itself when the summary is gone.
        (job.work / "runs" / backend / "summary.json").unlink()
        job.call("report", f"runs/{backend}", "-o", "again.html")
        assert "missed" not in (job.work / "again.html").read_text()
    live = job.summary("--backend", "live", "--testbed", "plain", "--target-loss", "3.3", "--evaluate-every", "2", "--window",
                       "5", "--run", "runs/live")
    assert live["reached"] and live["loss"] <= 3.3 and live["target_loss"] == 3.3, live
    first = json.loads((job.work / "runs" / "live" / "rounds.jsonl").read_text().splitlines()[0])
    assert 3.3 < first["reports"][0]["training"]["loss"] < 6, "a loss per byte, not per sequence"


def check_comparison(job):
    out, _ = job.call("compare", "--backend", "virtual", "--workload", "text.toml", "--cluster", "nodes.toml", "--policies",
                      "static,goodput", "--target-loss", "3.3")
    header, verdict = out.splitlines()[0], out.splitlines()[-3]
    assert "loss" in header and "accuracy" not in header, out
    assert " won: the target in " in out, verdict
    out, _ = job.call("compare", "--backend", "sim", "--workload", "text.toml", "--cluster", "nodes.toml", "--policies",
                      "static,static:16", "--time", "1")
    assert " won: loss " in out and " below " in out, out


def check_calibration(job):
    runs = []
    for size in (4, 8, 16, 32):
        runs.append(f"runs/c{size}")
        job.summary("--backend", "sim", "--full", "--policy", f"static:{size}", "--start-batch", size, "--run", runs[-1])
    result = json.loads(job.call("calibrate", *runs, "--keep-cost", "--json", "-o", "fitted.toml")[0])
    assert result["target_loss"] > 3 and result["target_accuracy"] is None, result
    errors = [abs(size["simulated_time_to_target_s"] / size["time_to_target_s"] - 1) for size in result["held_out"]
              if not size["extrapolated"]]
    assert errors and max(errors) < 0.3, result["held_out"]
    assert "time to loss" in (job.work / "fitted.toml").read_text()


def check_refusals(job):
    text = job.work / "data" / "bible" / "bible.txt"
    whole = text.read_bytes()
    text.write_bytes(whole[:-1])
    _, errors = job.train(code=2)
    assert "its sha256 is" in errors and "run `scripts/fetch-text bible`" in errors, errors
    text.write_bytes(whole)
    _, errors = job.train("--model", "lenet", code=2)
    assert "model for text = lenet is not allowed: expected one of transformer, transformer4" in errors, errors
    _, errors = job.train("--target", "0.5", "--target-loss", "2", code=2)
    assert "at most one of them ends the job" in errors, errors


def main():
    program, fetch = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    if shutil.which("bible") is None:
        print("needs the Debian package bible-kjv")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        subprocess.run([fetch, "bible", str(work / "data" / "bible")], check=True, stdout=subprocess.DEVNULL)
        (work / "text.toml").write_text(WORKLOAD)
        (work / "nodes.toml").write_text(CLUSTER)
        job = Job(program, work)
        check_targets(job)
        check_comparison(job)
        check_calibration(job)
        check_refusals(job)


if __name__ == "__main__":
    main()
