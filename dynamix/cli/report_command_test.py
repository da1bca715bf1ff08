#!/usr/bin/env python3
"""dynamix report: one page of recorded runs, opened in headless Chromium: charts are drawn with the records' values, can be
zoomed, fit a phone; nothing is requested from outside, the console stays empty.

usage: report_command_test.py DYNAMIX
"""
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from browser import Browser

POLICIES = ["static", "balanced", "default"]
SIM = ["train", "--backend", "sim", "--workload", "lenet_fashion", "--cluster", "demo", "--workers", "4", "--target", "0.89", "--json"]


def run(*words, code=0):
    done = subprocess.run([sys.argv[1], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == code, (words, done.stderr)
    return done


def check_text(text):
    assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), "only the name of SVG looks like an address"
    verdict, table = text.index('class="verdict"'), text.index("<table>")
    assert verdict < table, "the verdict comes first"
    assert "One seed: it may have been chance." in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [each["name"] for each in data["runs"]] == POLICIES
    assert data["runs"][0]["config"]["why_title"] == "what the rule read"
    assert data["runs"][2]["config"]["why_title"] == "features that drove it"
    assert any(event["label"].startswith("worker 0 4x slower") for event in data["runs"][0]["config"]["events"])
    assert any("fastest worker" in reason["name"] for point in data["runs"][1]["points"] for reason in point["why"])
    return data


def check_browser(page, data, runs, work):
    with Browser(work) as browser:
        for width, dark in ((1000, False), (390, True)):
            browser.resize(width, 900, dark)
            browser.open(page.as_uri())
            # Of each policy: quality over time and samples; 4 workers' batches, noise and global batch, samples/s and more.
            browser.wait("document.querySelectorAll('polyline').length >= 2 * 3 + 3 * 7")
            assert browser.value("document.documentElement.scrollWidth <= innerWidth"), f"off-screen at {width}"
            assert browser.value("document.querySelectorAll('.bar').length") == 3 * 4
            assert browser.value("[...document.querySelectorAll('.band')].length") >= 4
        browser.picture(work / "page.png")
        assert (work / "page.png").stat().st_size > 20000, "an empty page"
        # What a reader sees under the pointer is what was recorded.
        records = [json.loads(line) for line in (runs[1] / "rounds.jsonl").read_text().splitlines()]
        before, middle = records[len(records) // 2 - 1:len(records) // 2 + 1]
        inside = (before["seconds"] + middle["seconds"]) / 2  # a batch holds for its window
        chart = "[...document.querySelectorAll('#run-1 figure')].find(f => f.textContent.startsWith('Each worker'))"
        tip = browser.value(f"""(() => {{
            const figure = {chart}, svg = figure.querySelector('svg'), box = svg.getBoundingClientRect();
            const lines = {json.dumps([record['seconds'] for record in records])};
            const last = lines[lines.length - 1], first = lines[0];
            const width = svg.viewBox.baseVal.width, t = {inside};
            const at = 52 + (t - first) / (last - first) * (width - 12 - 52);
            svg.dispatchEvent(new PointerEvent('pointermove', {{clientX: box.left + at * box.width / width, clientY: box.top + 50}}));
            return figure.querySelector('.tip').textContent;
        }})()""")
        assert all(str(batch) in tip for batch in middle["batches"]), (tip, middle["batches"])
        assert not browser.console, browser.console
        assert all(url.startswith(("file:", "data:", "about:")) for url in browser.requests), browser.requests


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        runs = [work / policy for policy in POLICIES]
        for each in runs:
            run(*SIM, "--policy", each.name, "--run", each)
        page = work / "page.html"
        done = run("report", *runs, "-o", page, "--json")
        assert json.loads(done.stdout) == {"report": str(page), "runs": 3}
        data = check_text(page.read_text())

        # Two seeds are one row, with their spread; runs of different jobs are not one page.
        run(*SIM, "--policy", "static", "--seed", "2", "--run", work / "second")
        run("report", runs[0], work / "second", "-o", work / "seeds.html")
        assert "<td>static</td><td>2</td>" in (work / "seeds.html").read_text()
        run("train", "--backend", "sim", "--workload", "lenet_fashion", "--cluster", "demo", "--workers", "2", "--time", "5", "--json",
            "--run", work / "other")
        assert "runs of different jobs" in run("report", runs[0], work / "other", code=2).stderr

        # The table for other programs has the records' numbers under names.
        run("export", runs[0], "--csv", work / "runs.csv")
        rows = list(csv.DictReader((work / "runs.csv").open()))
        records = [json.loads(line) for line in (runs[0] / "rounds.jsonl").read_text().splitlines()]
        assert len(rows) == 4 * len(records), len(rows)
        assert float(rows[5]["compute_ms"]) == records[1]["reports"][1]["compute_ms"]
        columns = records[0]["columns"]["team_state"]
        known = [i for i, value in enumerate(records[1]["team_state"]) if value is not None][0]
        assert abs(float(rows[5]["team_state." + columns[known]]) - records[1]["team_state"][known]) < 1e-6
        assert len(columns) == len(records[1]["team_state"]), "every column has a name"

        # Live jobs are evaluated once more after their last round: the page has the last word, not the last line.
        summary = json.loads((runs[0] / "summary.json").read_text())
        (runs[0] / "summary.json").write_text(json.dumps({**summary, "accuracy": 0.8765}))
        run("report", runs[0], "-o", work / "last.html")
        assert "<td>0.8765</td>" in (work / "last.html").read_text()

        # A run that was killed: the line that was cut off is left out; damage elsewhere is named.
        rounds = runs[0] / "rounds.jsonl"
        lines = rounds.read_text().splitlines(keepends=True)
        rounds.write_text("".join(lines)[:-30])
        run("report", runs[0])
        rounds.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]))
        assert "rounds.jsonl:4 is damaged" in run("report", runs[0], code=2).stderr
        assert f"not the folder of a run, but of {len(runs) + 2}: name {work}/*" in run("report", work, code=2).stderr
        rounds.write_text("")
        assert "has no rounds yet" in (told := run("report", runs[0], code=2).stderr) and "--rounds" in told, told
        rounds.write_text("".join(lines))
        config = (runs[0] / "config.toml").read_text()
        (runs[0] / "config.toml").write_text("")
        assert f"dynamix: {runs[0]}/config.toml: " in run("report", runs[0], code=2).stderr
        (runs[0] / "config.toml").write_text(config)

        if shutil.which("chromium") is None:
            print("skipped in part: no chromium to open the page with")
            return
        check_browser(page, data, runs, work)


if __name__ == "__main__":
    main()
