#!/usr/bin/env python3
"""What people and programs see of a serving arbitrator: the dashboard in headless Chromium, Prometheus and its queries.

usage: arbitrator_watching_test.py DYNAMIX ADVISED_JOB SOURCE_DIR
"""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

from arbitrator_processes import LIMIT_S, Arbitrator, Job, Place, wait_until

sys.path.append(str(pathlib.Path(__file__).parent.parent / "dynamix" / "cli"))
from browser import Browser  # noqa: E402


# What the small job here does not measure, so that it has no series.
UNMEASURED = ("noise_scale", "useful_samples", "communication", "rtt", "retransmission", "cpu_use", "accuracy", "learning_rate")


def records(folder):
    path = folder / "rounds.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def dashboard_follows_a_job(place):
    folder = place.folder / "dashboard"
    with Arbitrator(place, policy="balanced", flags=["--no-guard", "--dashboard", "127.0.0.1:0", "--run", str(folder)]) as arbitrator, \
            Browser(place.folder) as browser:
        port = arbitrator.hello["dashboard_port"]
        job = Job(place, arbitrator.address, name="shown")
        job.at_window(3)
        browser.resize(1000, 900)
        browser.open(f"http://127.0.0.1:{port}/")
        browser.wait("window.dashboard?.run?.points.length >= 3")
        browser.wait("document.querySelectorAll('#job polyline').length >= 6")
        assert browser.value("document.querySelector('#jobs td').textContent") == "shown"
        # As it happens: more rounds than when it was opened. The job is held half way, so their number settles.
        job.at_window(8)
        wanted = wait_until(lambda: len(records(folder / "shown")) >= 8 and records(folder / "shown"), lambda: "no records")
        browser.wait(f"dashboard.run.points.length >= {len(wanted)}")
        points = browser.value("dashboard.run.points")
        for line, point in zip(wanted, points):
            assert point["round"] == line["round"] and point["batches"] == line["batches"] and point["sizes"] == line["sizes"]
            for value, report in zip(point["compute"], line["reports"]):
                assert value is None if report is None else abs(value - report["compute_ms"]) <= 1e-5 * report["compute_ms"]
        browser.wait("document.getElementById('state').textContent === 'live'")
        browser.resize(390, 800, dark=True)
        assert browser.wait("document.documentElement.scrollWidth <= innerWidth"), "off-screen on a phone"
        assert not browser.console, browser.console
        assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in browser.requests if url != "about:blank"), browser.requests

        # The arbitrator is gone for a while: the page waits for it, and goes on with what the new one knows.
        arbitrator.end()
        browser.wait("document.getElementById('state').textContent !== 'live'")
        arbitrator.flags[arbitrator.flags.index("--dashboard") + 1] = f"127.0.0.1:{port}"
        arbitrator.start("balanced")
        job.finish()
        browser.wait("document.getElementById('state').textContent === 'live'")
        last = records(folder / "shown")[-1]
        browser.wait(f"dashboard.run.points.at(-1)?.round === {last['round']}")
        # Connections were refused meanwhile, and the new one did not know the job at once.
        assert all("ERR_" in text or "404" in text for text in browser.console), browser.console

        # Afterwards the same page, from the records.
        replay = subprocess.Popen([place.dynamix, "dashboard", str(folder), "--listen", "127.0.0.1:0", "--json"],
                                  stdout=subprocess.PIPE, text=True)
        browser.open(json.loads(replay.stdout.readline())["url"])
        browser.wait(f"window.dashboard?.run?.points.length === {len(records(folder / 'shown'))}")
        replay.terminate()
        assert replay.wait(timeout=LIMIT_S) == 0
        page = subprocess.run([place.dynamix, "report", str(folder / "shown"), "-o", str(place.folder / "page.html")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert page.returncode == 0, page.stderr


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$job", "scraped")


def prometheus_understands_all(place):
    """promtool has nothing to say about the page; every query of the Grafana dashboard finds something."""
    with Arbitrator(place, policy="balanced", flags=["--no-guard", "--metrics", "127.0.0.1:0"]) as arbitrator:
        job = Job(place, arbitrator.address, name="scraped")
        job.at_window(3)
        checked = subprocess.run(["promtool", "check", "metrics"], input=arbitrator.metrics(), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
        assert checked.returncode == 0 and not checked.stdout, checked.stdout
        port, config = free_port(), place.folder / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: arbitrator\n  honor_labels: true\n"
                          f"  static_configs: [{{targets: ['127.0.0.1:{arbitrator.hello['metrics_port']}']}}]\n")
        with open(place.folder / "prometheus.log", "w") as log:
            server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={place.folder / 'data'}",
                                       f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

        def found(query):
            address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            try:
                with urllib.request.urlopen(address, timeout=LIMIT_S) as answer:
                    return json.load(answer)["data"]["result"]
            except urllib.error.HTTPError as error:
                raise AssertionError((query, error.read())) from None
            except OSError:  # it is not up yet
                return []

        try:
            dashboard = json.loads((place.source / "packaging" / "grafana" / "dynamix.json").read_text())
            for title, query in queries(dashboard):
                if any(name in query for name in UNMEASURED):
                    found(query)  # it can be asked
                    assert f'"{query.split("{")[0]}"' in (place.source / "dynamix" / "rpc" / "metrics.cc").read_text(), query
                else:
                    wait_until(lambda: found(query), lambda: f"{title}: nothing for {query}")
        finally:
            server.terminate()
            server.wait()
        job.finish()


def main():
    skipped = [program for program in ("chromium", "prometheus") if shutil.which(program) is None]
    with tempfile.TemporaryDirectory() as name:
        for number, (program, check) in enumerate((("chromium", dashboard_follows_a_job), ("prometheus", prometheus_understands_all))):
            if program in skipped:
                continue
            place = Place(sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(name) / str(number))
            try:
                check(place)
            finally:
                place.end_jobs()
    if skipped:
        print("skipped in part: no " + " and no ".join(skipped))


main()
