#!/usr/bin/env python3
"""dynamix hands the commands that train over to dynamix-train: same descriptions, same help, same exit codes; and it loads
no libtorch itself.

usage: trainer_test.py DYNAMIX DYNAMIX_TRAIN
"""
import re
import shutil
import subprocess
import sys
import tempfile


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def commands(program):
    """Name and description of each command."""
    text = run(program, "--help")[1].split("Subcommands:")[1].split("Example")[0]
    return dict(re.findall(r"^  (\w+) +(.+?)$", text, re.M))


def main():
    dynamix, trainer = sys.argv[1:]
    everything, training = commands(dynamix), commands(trainer)
    assert {"train", "compare", "evaluate"} <= training.keys() <= everything.keys(), (training, everything)
    for name, description in training.items():
        assert everything[name] == description, (name, everything[name], description)
    code, text, _ = run(dynamix, "train", "--help")
    assert code == 0 and "--workload" in text and "dynamix train --cluster" in text, text
    code, _, errors = run(dynamix, "train", "--no-such-flag")
    assert code == 2 and "--no-such-flag" in errors, errors
    code, text, _ = run(dynamix, "launch", "-n", "1", "--backend", "nccl", "--", "sh", "-c", "echo $DYNAMIX_BACKEND")
    assert code == 0 and text == "[0] nccl\n", text
    words = ["[100,10]", "x[1]", "--n=[1]", "a,b", "--"]
    code, text, _ = run(dynamix, "launch", "-n", "1", "--no-prefix", "--", "printf", "%s\n", *words)
    assert code == 0 and text.split() == words, "a program's arguments are its own: " + text
    assert "torch" not in run("ldd", dynamix)[1] and "torch" in run("ldd", trainer)[1]
    with tempfile.TemporaryDirectory() as alone:
        code, _, errors = run(shutil.copy(dynamix, alone), "train")
        assert code == 1 and "DYNAMIX_WITH_TORCH" in errors, errors


if __name__ == "__main__":
    main()
