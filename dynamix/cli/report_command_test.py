#!/usr/bin/env python3
"""dynamix report: one page of recorded runs, opened in headless Chromium: charts are drawn, nothing is requested from
outside, the console stays empty.

usage: report_command_test.py DYNAMIX
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

POLICIES = ["static", "balanced", "default"]
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--virtual-time-budget=2000"]


def browse(page, work, *more):
    """DOM, console lines and requested addresses of a page."""
    log = work / "net.json"
    done = subprocess.run(["chromium", *QUIET, f"--user-data-dir={work / 'profile'}", f"--log-net-log={log}",
                           "--enable-logging=stderr", *more, "--dump-dom", page.as_uri()],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    # What the browser asks for on its own account has no page as initiator.
    requests = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    addresses = {r["url"] for r in requests if r.get("url", "").startswith("http") and
                 r.get("initiator", "not an origin") != "not an origin"}
    return done.stdout, console, addresses


def check_page(text):
    assert "http://" not in text and "https://" not in text
    points = re.findall(r'<polyline[^>]* points="([^"]*)"', text)
    # Accuracy of each policy; of each policy 4 workers' batches, noise scale and global batch.
    assert len(points) == 3 + 3 * 6, len(points)
    for line in points:
        places = [tuple(map(float, place.split(","))) for place in line.split()]
        assert len(places) > 5 and all(0 <= x <= 760 and 0 <= y <= 270 for x, y in places), line
    assert text.count('class="band"') >= 4 and "worker 0 4x slower" in text
    assert text.count('class="bar"') == 3 * 4
    decisions = text.split("<h2>default</h2>")[1]
    assert re.search(r"<td>(x|/)1\.\d+</td>", decisions) and "+1 doubles it" in decisions
    assert "No decision changed a batch" in text.split("<h2>static</h2>")[1].split("<h2>")[0]


def main():
    dynamix = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        runs = [work / policy for policy in POLICIES]
        for run in runs:
            subprocess.run([dynamix, "train", "--backend", "sim", "--workload", "lenet_fashion", "--cluster", "demo", "--workers",
                            "4", "--target", "0.89", "--policy", run.name, "--run", str(run), "--json"],
                           stdout=subprocess.PIPE, check=True)
        page = work / "page.html"
        done = subprocess.run([dynamix, "report", *map(str, runs), "-o", str(page), "--json"], stdout=subprocess.PIPE, check=True)
        assert json.loads(done.stdout) == {"report": str(page), "runs": 3}
        check_page(page.read_text())

        # Live jobs are evaluated once more after their last round: the page has the last word, not the last line.
        summary = json.loads((runs[0] / "summary.json").read_text())
        (runs[0] / "summary.json").write_text(json.dumps({**summary, "accuracy": 0.8765}))
        subprocess.run([dynamix, "report", str(runs[0]), "-o", str(work / "last.html")], stdout=subprocess.PIPE, check=True)
        assert "<td>0.8765</td>" in (work / "last.html").read_text()

        # A run that was killed: the line that was cut off is left out; damage elsewhere is named.
        rounds = runs[0] / "rounds.jsonl"
        lines = rounds.read_text().splitlines(keepends=True)
        rounds.write_text("".join(lines)[:-30])
        subprocess.run([dynamix, "report", str(runs[0])], stdout=subprocess.PIPE, check=True)
        rounds.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]))
        refused = subprocess.run([dynamix, "report", str(runs[0])], stderr=subprocess.PIPE, text=True)
        assert refused.returncode == 2 and "rounds.jsonl:4 is damaged" in refused.stderr, refused
        refused = subprocess.run([dynamix, "report", str(work)], stderr=subprocess.PIPE, text=True)
        assert refused.returncode == 2 and "not the folder of a run" in refused.stderr, refused

        if shutil.which("chromium") is None:
            print("skipped in part: no chromium to open the page with")
            return
        control = work / "control.html"
        control.write_text('<img src="http://127.0.0.1:9/outside.png">')
        assert browse(control, work)[2] == {"http://127.0.0.1:9/outside.png"}, "requests of a page are seen"
        for screen in (["--window-size=1000,2000"], ["--window-size=390,2000", "--force-dark-mode"]):
            picture = work / "page.png"
            text, console, addresses = browse(page, work, *screen)
            check_page(text)
            assert not console, console
            assert not addresses, addresses
            subprocess.run(["chromium", *QUIET, f"--user-data-dir={work / 'profile'}", *screen, f"--screenshot={picture}",
                            page.as_uri()], stderr=subprocess.PIPE, check=True, timeout=120)
            assert picture.stat().st_size > 20000, "an empty page"


if __name__ == "__main__":
    main()
