#!/usr/bin/env python3
"""scripts/fuzz with fuzzers that only spend time: its record adds up and ends the work, damage of it is named, a fuzzer that was
killed is told from one that failed, and nothing outlives the script.

usage: fuzz_test.py SOURCE_DIR
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(sys.argv[1]).resolve()
SPEND = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n{then}\n"
TELL = "print('stat::number_of_executed_units: 7')"


def make_tree(work):
    """The script beside nothing but what it asks for."""
    (work / "scripts").mkdir()
    shutil.copy(SOURCE / "scripts/fuzz", work / "scripts")
    for name in ("deps", "build"):
        (work / "scripts" / name).write_text("#!/bin/sh\n")
        (work / "scripts" / name).chmod(0o755)
    (work / "dynamix/room").mkdir(parents=True)
    (work / "docs/results").mkdir(parents=True)
    (work / "build/fuzz/fuzzers").mkdir(parents=True)


def make_fuzzer(work, name, seconds, then):
    (work / f"dynamix/room/{name}.cc").touch()
    file = work / "build/fuzz/fuzzers" / name
    file.write_text(f"#!{sys.executable}\nimport os, signal\n" + SPEND.format(seconds=seconds, then=then))
    file.chmod(0o755)


def has_ended(pid):
    try:
        return "(zombie)" in pathlib.Path("/proc", pid, "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def fuzz(work, *words, code=0):
    done = subprocess.run([sys.executable, work / "scripts/fuzz", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (words, done)
    return done


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        make_tree(work)
        record = work / "docs/results/fuzz.json"
        make_fuzzer(work, "one_fuzz", 0.2, TELL)
        make_fuzzer(work, "two_fuzz", 0.2, TELL)

        # Half a second each: three turns; the same command again does nothing.
        fuzz(work, "--minutes", "0.0085")
        told = json.loads(record.read_text())
        assert all(one["seconds"] >= 0.51 and one["inputs"] % 7 == 0 and one["inputs"] >= 7 for one in told.values()), told
        assert sorted(told) == ["one_fuzz", "two_fuzz"]
        fuzz(work, "--minutes", "0.0085")
        assert json.loads(record.read_text()) == told
        fuzz(work, "--minutes", "0.0001", "--fresh", "two_fuzz", "two_fuzz")
        again = json.loads(record.read_text())
        assert again["one_fuzz"] == told["one_fuzz"] and again["two_fuzz"]["inputs"] == 7, again

        for damage in ("{", "[]", '{"one_fuzz": 5}', '{"one_fuzz": {}}', '{"one_fuzz": {"seconds": NaN, "inputs": 1}}',
                       '{"one_fuzz": {"seconds": -1, "inputs": 1}}'):
            record.write_text(damage)
            assert "is damaged" in fuzz(work, code=1).stderr, damage
        record.unlink()
        assert "expected one of one_fuzz, two_fuzz" in fuzz(work, "three_fuzz", code=2).stderr

        make_fuzzer(work, "two_fuzz", 0, "os.kill(os.getpid(), signal.SIGKILL)")
        assert "ended with code -9, and kept no input" in fuzz(work, "two_fuzz", code=1).stderr
        kept = work / "build/fuzz/failed/two_fuzz-crash"
        make_fuzzer(work, "two_fuzz", 0, f"open({str(kept)!r}, 'w').close(); print('what went wrong'); raise SystemExit(77)")
        failed = fuzz(work, "two_fuzz", code=1).stderr
        assert "what went wrong" in failed and "an input made two_fuzz fail" in failed, failed

        # Killed, or asked to end: its fuzzer ends too, and what was not a whole turn is not counted.
        record.unlink(missing_ok=True)
        for number in (signal.SIGKILL, signal.SIGTERM):
            pid = work / "pid"
            make_fuzzer(work, "one_fuzz", 0, f"open({str(pid)!r} + '.new', 'w').write(str(os.getpid())); "
                        f"os.rename({str(pid)!r} + '.new', {str(pid)!r}); signal.pause()")
            script = subprocess.Popen([sys.executable, work / "scripts/fuzz", "one_fuzz"], stderr=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL)
            while script.poll() is None and not pid.exists():
                time.sleep(0.01)
            os.kill(script.pid, number)
            assert script.wait(60) in (-signal.SIGKILL, 130), script.returncode
            while not has_ended(pid.read_text()):
                time.sleep(0.01)
            pid.unlink()
        assert not record.exists()


if __name__ == "__main__":
    main()
