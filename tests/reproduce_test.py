#!/usr/bin/env python3
"""scripts/reproduce: the quick form of a cheap experiment writes its part, goes on after ctrl-C and repeats nothing; a page
without a part's markers is refused before anything runs; scripts/bench knows the benchmarks; and docs/results.md is what its
data make.

usage: reproduce_test.py DYNAMIX SOURCE_DIR
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DYNAMIX, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "scripts/reproduce.d"))
sys.dont_write_bytecode = True
import steps  # noqa: E402

NAMES = ["judge", "accuracy", "scale", "network", "transfer", "peers", "ablation", "live", "python", "overhead"]


def start(*words):
    return subprocess.Popen([sys.executable, SOURCE / "scripts/reproduce", *map(str, words)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "DYNAMIX_PROGRAM": str(DYNAMIX)})


def reproduce(*words, code=0):
    process = start(*words)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == code, (words, process.returncode, out, errors)
    return out, errors


def steps_in(runs):
    return {path.name: path.stat().st_mtime_ns for path in (runs / "scale/steps").glob("*.json")}


def check_quick(work):
    """Interrupted after its first step; the same command goes on, and leaves what was done alone."""
    before_page = (SOURCE / "docs/results.md").read_bytes()
    runs, before = work / "runs", {}
    process = start("--quick", "scale", "--runs", runs, "--cores", 1)
    while process.poll() is None and not before:
        before = steps_in(runs)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130), (process.returncode, errors)
    assert process.returncode == 0 or "the same command goes on" in errors, errors

    out, errors = reproduce("--quick", "scale", "--runs", runs, "--cores", 1)
    after = steps_in(runs)
    assert len(after) == 2 and before.items() <= after.items(), (before, after)
    assert "is there" in errors, errors
    assert "\n\n## Scale" in out and out.startswith("**The quick form: 2 steps") and "| 8 | 1 | 0." in out and "scripts/reproduce scale" in out, out
    assert "dynamix evaluate --suite scale_128 --workers 8" in out, out
    told = json.loads((runs / "scale/steps/sim-8.json").read_text())
    times = {one["policy"]: one["time_to_target_s"] for one in told["output"]["results"]}
    assert f"| 8 | 1 | {times['default'] / times['static']:.2f} |" in out, (times, out)
    assert (SOURCE / "docs/results.md").read_bytes() == before_page, "a quick form touched the page"

    out, _ = reproduce("--quick", "ablation", "--runs", runs)  # without the rule that its sentence speaks of
    assert "\n\n## Ablation" in out and "| without network features |" in out, out

    # Another command is another step.
    changed = {**told, "command": told["command"] + " --seeds 9"}
    (runs / "scale/steps/sim-8.json").write_text(json.dumps(changed))
    reproduce("--quick", "scale", "--runs", runs, "--cores", 1)
    assert json.loads((runs / "scale/steps/sim-8.json").read_text())["command"] == told["command"]


def check_refusals(work):
    docs = work / "bare"
    docs.mkdir()
    (docs / "results.md").write_text("# Results\n\n<!-- reproduce:scale -->\n")
    for words in (["scale"], ["--part", "scale"]):
        _, errors = reproduce(*words, "--docs", docs, "--runs", work / "never", code=2)
        assert "<!-- /reproduce:scale -->" in errors, errors
    assert not (work / "never").exists(), "it ran before it looked for its place"
    _, errors = reproduce("acuracy", code=2)
    assert "the closest is accuracy" in errors, errors
    _, errors = reproduce("--quick", "--part", "scale", code=2)
    assert "--quick, --fresh and --only go with NAME" in errors, errors
    check_only(work)
    out, _ = reproduce("--list")
    assert re.findall(r"^(\w+) +about \d+ minutes on two cores", out, re.M) == NAMES, out


def check_damage(work):
    """Records that cannot be read are named, before anything runs; a kept step that is damaged is made again."""
    docs, runs = work / "damaged", work / "damaged-runs"
    shutil.copytree(SOURCE / "docs/results", docs / "results")
    shutil.copy(SOURCE / "docs/results.md", docs)
    for text in ("{", "{}", "[1]", (docs / "results/scale.json").read_text()):
        (docs / "results/peers.json").write_text(text)  # not JSON, nothing, a list, another experiment's
        for words in (["scale"], ["--part", "scale"]):
            _, errors = reproduce(*words, "--docs", docs, "--runs", runs, code=2)
            assert "results/peers.json is damaged" in errors and not runs.exists(), errors
    (docs / "results/peers.json").unlink()
    data = json.loads((docs / "results/scale.json").read_text())
    (docs / "results/scale.json").write_text(json.dumps({**data, "found": {"sim-8": [{"policy": "static"}]}}))
    before = (docs / "results.md").read_bytes()
    _, errors = reproduce("--part", "scale", "--docs", docs, code=2)
    assert "results/scale.json is damaged (KeyError" in errors and (docs / "results.md").read_bytes() == before, errors
    place = steps.Place(runs, SOURCE, True, 1)
    for text in (b"\xff\xfe", b"5", b"{"):
        (runs / "steps").mkdir(parents=True, exist_ok=True)
        (runs / "steps/one.json").write_bytes(text)
        assert place.read("steps/one.json") is None, text
    one = steps.Step("one", ["true"], 1)
    assert steps.kept(one, {}, place) is None
    told = {**steps.identity(one, {}, place), "date": "2026-01-01T00:00:00Z", "seconds": 1.0, "output": {}}
    for damage in ({}, {"output": None}, {"seconds": "x"}, {"date": 5}):
        place.write("steps/one.json", {**told, **damage})
        assert (steps.kept(one, {}, place) is None) == bool(damage), damage


def check_fresh(work):
    """A word that is wrong, or a program that is not there, loses no runs; --only makes its own steps anew."""
    kept = work / "fresh/scale/steps/sim-8.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    reproduce("--quick", "scale", "--fresh", "--only", "nosuch", "--runs", work / "fresh", code=2)
    assert kept.exists()
    reproduce("--quick", "scale", "--fresh", "--only", "sim-16", "--runs", work / "fresh", "--cores", 1)
    assert kept.read_text() == "{}" and (kept.parent / "sim-16.json").exists()


def has_ended(pid):
    try:
        return "(zombie)" in pathlib.Path("/proc", pid, "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def sleeper(work):
    """A program that sleeps instead of working, and the file it writes its process into."""
    pid, program = work / "pid", work / "sleeps"
    program.write_text(f"#!/bin/sh\necho $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000\n")
    program.chmod(0o755)
    return pid, program


def check_alone(work):
    """Two in one folder would run their steps beside each other; a script that is killed takes its steps along."""
    pid, program = sleeper(work)
    environment = {**os.environ, "DYNAMIX_PROGRAM": str(program)}
    words = [sys.executable, SOURCE / "scripts/reproduce", "scale", "--quick", "--runs", work / "shared", "--cores", "1"]
    first = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment)
    while first.poll() is None and not pid.exists():
        time.sleep(0.01)
    second = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60)
    assert second.returncode == 1 and "another scripts/reproduce runs in" in second.stderr, second
    first.kill()
    first.wait()
    while not has_ended(pid.read_text().strip()):
        time.sleep(0.01)
    pid.unlink()


def check_sentences():
    """A sentence of a page holds whatever the figures are."""
    import ablation
    import live
    from figures import Ratio
    more = {"compute": [0.1, 0.3], "exchange": [1.9, 0.4], "rest": [4.7, 4.2], "iteration": [6.7, 4.9]}
    assert live.most_of(more) == " Most of it is the rest."
    assert live.most_of({what: [-one for one in some] for what, some in more.items()}) == "", "not longer"
    assert live.most_of({**more, "exchange": [4.7, 4.3], "iteration": [11, 10]}) == "", "less than half"
    even, slower = Ratio([0.98, 1.02, 1.0]), Ratio([1.3, 1.31, 1.32])
    over = {"composite": even, "pure": slower, "published": slower}
    assert "does worse" in ablation.cause(over, ["local"], ["pure", "published"])[0]
    assert "does worse" not in ablation.cause(over, ["local"], ["pure"])[0]
    assert ablation.cause({"composite": slower}, ["local"], []) == [], "the rule alone is not as good"
    assert ablation.cause({}, ["local"], []) == [], "not asked"
    runs = [{"policy": policy, "seed": 1, "reached": policy == "plain", "time_to_target_s": time_s, "iteration_ms": 10.0,
             "last_batches": [64]} for policy, time_s in (("plain", 90.0), ("default", 80.0))]
    import python
    missed = python.part({run["policy"]: run for run in runs})
    assert not missed.goals[0].met and "1 of 1 targets are missed" in missed.verdict and "80*" in missed.text, missed
    assert python.part({"default": runs[1]}).goals == [], "nothing beside it"


def check_signals(work):
    """SIGTERM and a closed terminal end the steps too, also of a script that a shell has put into the background."""
    pid, program = sleeper(work)
    for number in (signal.SIGTERM, signal.SIGHUP):
        process = subprocess.Popen([sys.executable, SOURCE / "scripts/reproduce", "scale", "--quick", "--runs", work / "deaf",
                                    "--cores", "1"], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "DYNAMIX_PROGRAM": str(program)},
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        while process.poll() is None and not pid.exists():
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 130 and "the same command goes on" in errors, (number, process.returncode, errors)
        assert not pathlib.Path("/proc", pid.read_text().strip()).exists(), "a step outlived its script"
        pid.unlink()


def check_only(work):
    """What the page shows of steps that another machine ran stays, unless it is of other code: then nothing is run."""
    docs = work / "shown"
    (docs / "results").mkdir(parents=True)
    (docs / "results.md").write_text("<!-- reproduce:scale -->\n<!-- /reproduce:scale -->\n<!-- reproduce:goals -->\n"
                                     "<!-- /reproduce:goals -->\n")
    version = steps.code_version(SOURCE)
    command = ("dynamix evaluate --suite scale_128 --workers 8 --seeds 10 --policies static,balanced,goodput,composite,default "
               "--no-static-sizes --no-bounds --threads 1 --json")
    row = {"scenario": "one", "workload": "one", "workers": 8, "seed": 1, "reached": True}
    data = {"experiment": "scale", "begun": "2026-01-01", "date": "2026-01-01", "policy": steps.policy_checksum(SOURCE),
            "version": version, "minutes": 1, "commands": [command], "missing": [],
            "found": {"sim-8": [{**row, "policy": policy, "time_to_target_s": time_s}
                                for policy, time_s in (("static", 40.0), ("balanced", 30.0), ("goodput", 25.0),
                                                       ("composite", 21.0), ("default", 20.0))]}}
    data_file = docs / "results/scale.json"
    data_file.write_text(json.dumps({**data, "version": version - 1}))
    for other in ({"version": version - 1}, {"commands": [command.replace("--seeds 10", "--seeds 9")]}):
        data_file.write_text(json.dumps({**data, **other}))
        _, errors = reproduce("scale", "--only", "sim-32", "--docs", docs, "--runs", work / "elsewhere", code=2)
        assert "would take sim-8 off the page" in errors and not (work / "elsewhere").exists(), errors
    data_file.write_text(json.dumps({**data, "commands": [command.replace("--threads 1", "--threads 2")]}))
    reproduce("scale", "--only", "sim-32", "--docs", docs, "--runs", work / "elsewhere")
    told = json.loads(data_file.read_text())
    assert told["found"]["sim-8"] == data["found"]["sim-8"] and list(told["found"]) == ["sim-32", "sim-8"], list(told["found"])
    assert len(told["commands"]) == 2 and told["begun"] == "2026-01-01" < told["date"] and told["minutes"] > 1, told
    reproduce("scale", "--only", "sim-32", "--docs", docs, "--runs", work / "elsewhere")
    assert json.loads(data_file.read_text())["minutes"] == told["minutes"], "the same step twice"
    assert "sim-8" not in told["missing"] and "virtual-4" in told["missing"], told["missing"]
    assert "| 8 | 40 | 30 | 25 | 21 | 20 |" in (docs / "results.md").read_text(), (docs / "results.md").read_text()
    stale = work / "elsewhere/scale/steps/sim-32.json"
    stale.write_text(json.dumps({**json.loads(stale.read_text()), "policy": "0" * 64}))
    reproduce("scale", "--only", "sim-8", "--docs", docs, "--runs", work / "elsewhere", "--cores", 1)
    assert list(json.loads(data_file.read_text())["found"]) == ["sim-32", "sim-8"], "a step of another policy took its figures along"


def check_bench():
    """scripts/bench knows every benchmark that an experiment names."""
    told = subprocess.run([SOURCE / "scripts/bench"], capture_output=True, text=True)
    assert told.returncode == 2, told
    named = re.search(r"NAME is one of: (.*)", told.stderr)[1].split()
    import overhead
    assert set(overhead.BENCHMARKS) <= set(named), named


def check_page(work):
    """What the committed data make is what is committed."""
    docs = work / "docs"
    docs.mkdir()
    shutil.copy(SOURCE / "docs/results.md", docs)
    if (SOURCE / "docs/results").exists():
        shutil.copytree(SOURCE / "docs/results", docs / "results")
    reproduce("--part", "all", "--docs", docs)
    page = (docs / "results.md").read_text()
    assert page == (SOURCE / "docs/results.md").read_text(), "docs/results.md is old: scripts/reproduce --part all"
    images = re.findall(r"\]\(images/(\w+\.svg)\)", page)
    for image in images:
        assert (docs / "images" / image).read_bytes() == (SOURCE / "docs/images" / image).read_bytes(), f"{image} is old"
    for name in NAMES:
        data = docs / "results" / f"{name}.json"
        part = page.split(f"<!-- reproduce:{name} -->")[1].split(f"<!-- /reproduce:{name} -->")[0]
        assert ("**Not run yet**" in part) != data.exists(), name


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_refusals(work)
        check_bench()
        check_damage(work)
        check_signals(work)
        check_fresh(work)
        check_alone(work)
        check_sentences()
        check_page(work)
        check_quick(work)


if __name__ == "__main__":
    main()
