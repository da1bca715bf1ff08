#!/usr/bin/env python3
"""dynamix learn: flags from a file, and a run that cannot go on keeps what it has.

usage: learn_command_test.py DYNAMIX
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SMALL = ["--tasks", "4", "--steps", "8", "--miniatures", "0", "--fitted", "none", "--validation-tasks", "1",
         "--validate-every", "1", "--max-workers", "4", "--threads", "1", "--hidden", "4"]


def learn(dynamix, work, *words):
    return subprocess.run([dynamix, "learn", *words], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120)


def check(dynamix, work):
    done = learn(dynamix, work, *SMALL, "--jobs", "2", "--updates", "1", "--seed", "5", "--run", "first", "--out", "first.safetensors")
    assert done.returncode == 0, done.stderr
    config = work / "first/config.toml"

    # The file's flags, and the command line's before them.
    done = learn(dynamix, work, "--config", str(config), "--run", "second", "--out", "second.safetensors")
    assert done.returncode == 0, done.stderr
    assert (work / "second.safetensors").read_bytes() == (work / "first.safetensors").read_bytes()
    done = learn(dynamix, work, "--config", str(config), "--run", "third", "--out", "third.safetensors", "--seed", "6")
    assert done.returncode == 0, done.stderr
    assert (work / "third.safetensors").read_bytes() != (work / "first.safetensors").read_bytes()

    done = learn(dynamix, work, "--config", "missing.toml")
    assert done.returncode == 2 and "--config missing.toml: cannot read" in done.stderr, done.stderr
    done = learn(dynamix, work, "--config", "/dev/zero")
    assert done.returncode == 2 and "not a regular file" in done.stderr, done.stderr
    done = learn(dynamix, work, *SMALL, "--run", "never", "--out", "nowhere/policy")
    assert done.returncode == 2 and "--out = nowhere/policy is not allowed" in done.stderr, done.stderr
    (work / "wrong.toml").write_text("upadtes=3\n")
    done = learn(dynamix, work, "--config", "wrong.toml")
    assert done.returncode == 2 and "upadtes is not a flag of learn" in done.stderr, done.stderr
    (work / "far.toml").write_text("updates=\"many\"\n")
    done = learn(dynamix, work, "--config", "far.toml")
    assert done.returncode == 2 and "--updates" in done.stderr, done.stderr

    # A policy that does without a family and without single features.
    done = learn(dynamix, work, *SMALL, "--jobs", "2", "--updates", "1", "--without", "network,time_at_twice",
                 "--out", "less.safetensors", "--run", "less")
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([dynamix, "policy", "show", str(work / "less.safetensors"), "--json"], stdout=subprocess.PIPE, text=True)
    off = set(json.loads(shown.stdout)["team"]["features_off"])
    assert {"time_at_twice", "retransmission.mean", "network_tier"} <= off and "time_at_half" not in off, off
    done = learn(dynamix, work, "--without", "time_at_once")
    assert done.returncode == 2 and "time_at_once" in done.stderr and "docs/metrics.md" in done.stderr, done.stderr

    # A run of other settings cannot be resumed, and says so without touching what is there.
    before = config.read_text()
    done = learn(dynamix, work, *SMALL, "--jobs", "3", "--updates", "2", "--seed", "5", "--run", "first", "--resume")
    assert done.returncode == 1 and "jobs" in done.stderr, done.stderr
    assert config.read_text() == before
    done = learn(dynamix, work, "--config", str(config), "--updates", "2", "--resume")
    assert done.returncode == 0, done.stderr
    (work / "second/best.json").write_text("")
    done = learn(dynamix, work, "--config", str(config), "--run", "second", "--out", "second.safetensors", "--resume")
    assert done.returncode == 2 and "second/best.json is damaged" in done.stderr, done.stderr
    # Stopped before its first validation: there is no best policy yet.
    (work / "second/best.json").unlink()
    done = learn(dynamix, work, "--config", str(config), "--run", "second", "--out", "second.safetensors", "--updates", "2",
                 "--resume")
    assert done.returncode == 0 and (work / "second/best.json").exists(), done.stderr
    done = learn(dynamix, work, *SMALL, "--jobs", "2", "--run", "nothing", "--resume")
    assert done.returncode != 0 and not (work / "nothing/config.toml").exists()


def main():
    with tempfile.TemporaryDirectory() as folder:
        check(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))


main()
