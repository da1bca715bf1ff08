#!/usr/bin/env python3
"""What a mistyped command, flag or name is answered with, and the lists of names.

usage: names_test.py DYNAMIX
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MISTYPED = {
    ("trian",): "trian is not known; did you mean train?",
    ("learn", "--upadtes", "3"): "--upadtes is not known; did you mean --updates?",
    ("learn", "--upadtes=3"): "did you mean --updates?",
    ("list", "scenario"): "did you mean scenarios?",
    ("evaluate", "--policies", "goodptu"): "did you mean goodput?",
    ("policy", "show", "defualt"): "did you mean default?",
    ("policy", "export", "defualt", "--format", "onnx"): "did you mean default?",
    ("learn", "--fitted", "lenet_fashon"): "did you mean lenet_fashion?",
}


def run(*words, folder=None):
    return subprocess.run([pathlib.Path(sys.argv[1]).resolve(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, cwd=folder)


def main():
    for words, answer in MISTYPED.items():
        done = run(*words)
        assert done.returncode == 2 and answer in done.stderr, (words, done.stderr)
    done = run("learn", "--updates", "-3", "--nothing-like-it")
    assert done.returncode == 2 and "--nothing-like-it is not known\n" in done.stderr, done.stderr

    for kind, name in {"policies": "default", "workloads": "demo/lenet_fashion", "scenarios": "mixed", "models": "resnet18",
                       "datasets": "moby"}.items():
        done = run("list", kind, "--json")
        assert done.returncode == 0, done.stderr
        names = json.loads(done.stdout)
        assert name in [each["name"] for each in names] and all(each["description"] for each in names), names
        assert name in run("list", kind).stdout
    assert "team network" in run("policy", "show", "default").stdout
    with tempfile.TemporaryDirectory() as folder:
        # A shipped policy is exported to where the user is.
        done = run("policy", "export", "default", "--format", "onnx", "--json", folder=folder)
        assert done.returncode == 0 and json.loads(done.stdout)["file"] == "default.onnx", done.stderr
        assert (pathlib.Path(folder) / "default.onnx").stat().st_size > 10000
    done = run("train", "--backend", "sim", "--workload", "vgg16_cifar10", "--cluster", "mixed", "--start-batch", "2")
    assert done.returncode == 2 and "--start-batch" in done.stderr and "[4, 1024]" in done.stderr, done.stderr


main()
