#!/usr/bin/env python3
"""dynamix evaluate on a population of jobs: two short jobs, two policies, real SGD. An interrupted suite goes on, what is known
is not run again, table, JSON, page and results file agree.

usage: evaluate_command_test.py DYNAMIX
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import first_in_time  # noqa: E402


def evaluate(*more, suite="validation-jobs"):
    command = [str(pathlib.Path(sys.argv[1]).resolve()), "evaluate", "--suite", suite, *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process, code=0):
    out, errors = process.communicate(timeout=200)
    assert process.returncode == code, (process.returncode, out, errors)
    return out, errors


def fashion_jobs():
    """Two jobs that need no other data than Fashion-MNIST, the cheapest to train."""
    rows = [line.split("  ") for line in finish(evaluate("--list"))[0].splitlines()]
    names = [row[0] for row in rows if "fashion_mnist" in [cell.strip() for cell in row] and " cnn" in "  ".join(row)]
    assert len(names) >= 2, rows
    return ",".join(names[:2])


def runs_in(cache):
    return {path: path.stat().st_mtime_ns for path in cache.glob("validation-*.json") if path.name != "validation-jobs.json"}


def check_list_of_files():
    """Scenario files are listed too, and not run."""
    out, _ = finish(evaluate("--workloads", "vgg16_cifar10", "--workers", "4,8", "--seeds", 2, "--list", suite="mixed"))
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["scenario", "workload", "workers", "seed"], out
    assert rows[2:] == [["mixed", "vgg16_cifar10", workers, seed] for workers in "48" for seed in "12"], out


def main():
    check_list_of_files()
    jobs = fashion_jobs()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)

        def suite(cache, *more):
            return evaluate("--backend", "virtual", "--jobs", jobs, "--length", "0.3", "--policies", "balanced", "--threads",
                            "1", "--cache", cache, *more)

        # Interrupted after the first run; the same command goes on and repeats nothing.
        def attempt(number):
            cache = work / f"cache{number}"
            process = suite(cache)
            while process.poll() is None and not runs_in(cache):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=200)
            assert process.returncode in (0, 130), (process.returncode, out, errors)
            if process.returncode == 0:
                return None
            assert "the same command goes on" in errors, errors
            return cache

        cache = first_in_time(attempt)
        before = runs_in(cache)
        assert 1 <= len(before) < 6, before
        page = work / "page.html"
        out, errors = finish(suite(cache, "--report", page))
        after = runs_in(cache)
        assert len(after) == 6 and before.items() <= after.items(), (before, after)  # 2 references, 2 policies x 2 jobs
        assert "fashion_mnist (" in errors and "balanced: " in out and "of static's time" in out, (out, errors)
        assert page.read_text().count('class="dot"') + page.read_text().count('class="hollow"') >= 2

        # All known: JSON, and the file that says who was looked at.
        told = json.loads(finish(suite(cache, "--json"))[0])
        assert runs_in(cache) == after
        assert told["whole"] is False and len(told["jobs"]) == 2 and len(told["looks"]) == 2, told
        assert told["looks"] == json.loads((cache / "validation-jobs.json").read_text())["looks"]
        for job in told["jobs"]:
            for result in job["results"]:
                assert result["reached"] or result["time_to_target_s"] == job["budget_s"], job

        # What is damaged is made again: a run without a curve.
        reference = next(path for path in runs_in(cache) if "-reference-" in path.name)
        kept = json.loads(reference.read_text())
        reference.write_text(json.dumps({**kept, "result": {**kept["result"], "curve": []}}))
        finish(suite(cache))
        assert json.loads(reference.read_text()) == kept

        # A job that was lost, as its file says, and whose runs with other seeds set no target: the rest is not lost with it.
        first = jobs.split(",")[0]
        slow = next(path for path in runs_in(cache) if path.name.startswith(f"{first}-balanced"))
        kept = json.loads(slow.read_text())
        slow.write_text(json.dumps({**kept, "result": {**kept["result"], "time_to_target_s": 1e6}}))
        shorter = ["--backend", "virtual", "--jobs", first, "--policies", "balanced", "--threads", 1, "--cache", cache]
        process = evaluate(*shorter, "--length", 0.3, "--again", "balanced", "--again-seeds", 2, "--json")
        out, errors = process.communicate(timeout=200)
        results = json.loads((cache / "validation-jobs.json").read_text())
        assert [look["policy"] for look in results["looks"]].count("balanced") == 2, results["looks"]
        if process.returncode == 0:
            again = json.loads(out)["again"]
            assert sum(len(job["ratios"]) for job in again["jobs"]) == 2 - again["left_out"], again
        else:
            assert "no reference run learned enough" in errors, errors

        # Bad input.
        for words, sentence in ((["--jobs", f"{first},{first}"], "each job once"),
                                (["--policies", "balanced,balanced"], "each policy once"),
                                (["--policies", "static", "--again", "static"], "another policy of --policies than static"),
                                (["--fresh", "nope"], "--fresh = nope is not allowed"),
                                (["--report", work], "a file, not a folder")):
            said = finish(evaluate("--backend", "virtual", "--cache", work / "never", *words), 2)[1]
            assert sentence in said, said
        (cache / "validation-jobs.json").write_text('{"looks": 5}')
        assert "is damaged" in finish(suite(cache), 1)[1]
        assert "virtual" in finish(evaluate("--backend", "sim"), 2)[1]
        assert "validation-01" in finish(evaluate("--backend", "virtual", "--jobs", "no-such-job"), 2)[1]
        assert "--again = nobody" in finish(evaluate("--backend", "virtual", "--again", "nobody"), 2)[1]
        assert "--again" in finish(evaluate("--backend", "virtual", "--again-seeds", "3"), 2)[1]
        assert "--workers is not for --suite" in finish(evaluate("--backend", "virtual", "--workers", "4"), 2)[1]
        for flag, value in (("--jobs", "validation-01"), ("--fresh", "static"), ("--length", "0.5"),
                            ("--again", "balanced")):
            said = finish(evaluate(flag, value, suite="held_out"), 2)[1]
            assert f"{flag} is not for --suite held_out" in said, said


if __name__ == "__main__":
    main()
