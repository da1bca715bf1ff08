#!/usr/bin/env python3
"""dynamix calibrate: runs of a known workload give a file that predicts the size left out; runs that cannot be fitted are
refused with the reason.

usage: calibrate_command_test.py DYNAMIX
"""
import json
import pathlib
import subprocess
import sys
import tempfile

WORKLOAD = """
[cost]
sample_ms = {sample_ms}
ramp_batch = 9
spill = 0
[model]
name = "lenet"
width = {width}
[optimizer]
learning_rate = 0.05
base_batch = 64
rule = "adascale"
schedule = "cosine"
planned_samples = 20000
[convergence]
engine = "quadratic"
dimensions = 8
curvature = {curvature}
noise_scale = 40
best_accuracy = 0.9
[target]
accuracy = {target}
"""
CLUSTER = """
workers = 2
time_budget = 20
sample_budget = 1
[[node]]
overhead_ms = 0
"""


def call(program, *arguments, code=0):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def record(program, work, name, batch, workload="true", seed=1):
    call(program, "train", "--backend", "sim", "--workload", work / f"{workload}.toml", "--cluster", work / "nodes.toml",
         "--policy", f"static:{batch}", "--start-batch", batch, "--seed", seed, "--full", "--run", work / name, "--json")
    return work / name


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "nodes.toml").write_text(CLUSTER)
        truth = {"sample_ms": 0.4, "width": 1, "curvature": 3, "target": 0.8}
        (work / "true.toml").write_text(WORKLOAD.format(**truth))
        (work / "wide.toml").write_text(WORKLOAD.format(**truth | {"width": 2}))
        (work / "slow.toml").write_text(WORKLOAD.format(**truth | {"sample_ms": 0.8}))
        runs = [record(program, work, f"b{b}-{s}", b, seed=s) for b in (8, 16, 32, 64) for s in (1, 2)]
        cost = [record(program, work, f"c{b}", b, "slow") for b in (8, 32, 128)]

        fitted = work / "fitted.toml"
        result = json.loads(call(program, "calibrate", *runs, "-o", fitted, "--json"))
        assert [size["size"] for size in result["held_out"]] == ["8", "16", "32", "64"], result
        assert [size["runs"] for size in result["held_out"]] == [2, 2, 2, 2], result
        assert [size["extrapolated"] for size in result["held_out"]] == [True, False, False, True], result
        assert result["target_accuracy"] == 0.8, result
        assert result["interpolation_error"]["iteration"] < 0.1, result
        assert result["interpolation_error"]["time"] < 0.2, result
        call(program, "train", "--backend", "sim", "--workload", fitted, "--cluster", work / "nodes.toml", "--no-record", "--json")

        # Costs from other runs, in units of a device twice as fast as theirs.
        text = call(program, "calibrate", *runs[::2], "--cost", *cost, "--sample-ms", 0.4, "--target", 0.7, "-o", fitted)
        assert "time to accuracy 0.7 " in text and "goal 20 %" in text, text
        assert 0.45 < float(text.split("has speed ")[1].split(",")[0]) < 0.55, text
        assert "sample_ms = 0.4\n" in fitted.read_text(), fitted.read_text()
        assert "accuracy = 0.8\n" in fitted.read_text(), "the workload keeps its own target"

        # Bad input names what is wrong, and nothing is written.
        fitted.unlink()
        refused = lambda *arguments: call(program, "calibrate", *arguments, "-o", fitted, code=2)
        assert "run" in refused()
        assert "not the folder of a run" in refused(work)
        wide = [record(program, work, f"w{b}", b, "wide") for b in (16, 64, 128)]
        assert "lenet x 2 on fashion_mnist" in refused(*runs, wide[0])
        assert "--cost trains lenet x 2" in refused(*runs, "--cost", *wide)
        assert "batch sizes of RUN = 1" in refused(*runs[:2])
        assert "batch sizes of --cost = 1" in refused(*runs, "--cost", cost[0])
        assert "--target" in refused(*runs, "--target", 1.5)
        assert "--cost" in refused(*runs, "--keep-cost", "--cost", *cost)
        assert not fitted.exists()
        call(program, "calibrate", *runs, "-o", work / "missing" / "x.toml", code=1)
    print("calibrate_command_test: ok")


if __name__ == "__main__":
    main()
