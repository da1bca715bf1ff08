#!/usr/bin/env python3
"""What people and programs see of a serving arbitrator and a job of four ranks that trains for real: the dashboard in headless
Chromium, Prometheus and the queries of the Grafana dashboard, TensorBoard's files, the page.

usage: arbitrator_watching_test.py DYNAMIX ADVISED_JOB SOURCE_DIR
"""
import contextlib
import json
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from arbitrator_processes import LIMIT_S, Arbitrator, Place, wait_until

sys.path.append(str(pathlib.Path(__file__).parent.parent / "dynamix" / "cli"))
from browser import Browser  # noqa: E402

LIVE = "document.getElementById('state').textContent === 'live'"


def records(folder):
    path = folder / "rounds.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextlib.contextmanager
def training(place, arbitrator):
    """LeNet on four ranks; it would go on for ten minutes."""
    with open(place.folder / "job.log", "w") as log:
        job = subprocess.Popen([place.dynamix, "launch", "-n", "4", "--name", "watched", "--", place.dynamix, "train", "--backend",
                                "live", "--workload", "lenet_fashion", "--advisor", arbitrator.address, "--job", "shown",
                                "--full", "--time", "600", "--run", str(place.folder / "run")], stdout=log, stderr=log)
        try:
            yield job
        finally:
            job.send_signal(signal.SIGTERM)
            job.wait(timeout=LIMIT_S)


def enough_records(place, count):
    return wait_until(lambda: len(found := records(place.folder / "served" / "shown")) >= count and found,
                      lambda: (place.folder / "job.log").read_text())


def check_dashboard(place, browser, port):
    """The page shows the records, moves with the job, fits a phone, and asks nobody else."""
    browser.resize(1000, 900)
    browser.open(f"http://127.0.0.1:{port}/")
    browser.wait("window.dashboard?.run?.points.length >= 3")
    browser.wait("document.querySelectorAll('#job polyline').length >= 12")
    assert browser.value("document.querySelector('#jobs td').textContent") == "shown"
    seen = browser.value("dashboard.run.points.length")
    wanted = enough_records(place, seen + 3)
    browser.wait(f"dashboard.run.points.length >= {len(wanted)}")
    for line, point in zip(wanted, browser.value("dashboard.run.points")):
        assert point["round"] == line["round"] and point["batches"] == line["batches"] and point["sizes"] == line["sizes"]
        for value, report in zip(point["compute"], line["reports"]):
            assert value is None if report is None else abs(value - report["compute_ms"]) <= 1e-5 * report["compute_ms"]
    browser.wait(LIVE)
    browser.value("dashboard.setPaused(true)")
    browser.wait("!dashboard.waiting && !dashboard.view.view.waiting")  # what was under way is drawn
    held = browser.value("document.querySelector('#job').innerHTML.length")
    enough_records(place, len(wanted) + 2)
    assert browser.value("document.querySelector('#job').innerHTML.length") == held, "it was paused"
    browser.value("dashboard.setPaused(false)")
    browser.resize(390, 800, dark=True)
    assert browser.wait("document.documentElement.scrollWidth <= innerWidth"), "off-screen on a phone"
    assert not browser.console, browser.console
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in browser.requests if url != "about:blank"), browser.requests


def check_restart(place, browser, arbitrator, port):
    """The arbitrator is gone for a while: the page waits for it, and goes on with all that was recorded."""
    arbitrator.end()
    browser.wait(f"!({LIVE})")
    before = records(place.folder / "served" / "shown")[-1]["round"]
    arbitrator.flags[arbitrator.flags.index("--dashboard") + 1] = f"127.0.0.1:{port}"
    arbitrator.start("balanced")
    browser.wait(LIVE)
    browser.wait(f"dashboard.run.points.at(-1)?.round > {before}")
    assert browser.value("dashboard.run.points[0].round") == 0, "the rounds before are there as well"
    assert all("ERR_" in text or "404" in text for text in browser.console), browser.console  # while it was away


def check_afterwards(place, browser):
    """The same page from the records; the page of the run; TensorBoard's files."""
    folder = place.folder / "served"
    replay = subprocess.Popen([place.dynamix, "dashboard", str(folder), "--listen", "127.0.0.1:0", "--json"],
                              stdout=subprocess.PIPE, text=True)
    browser.open(json.loads(replay.stdout.readline())["url"])
    lines = records(folder / "shown")
    browser.wait(f"window.dashboard?.run?.points.at(-1)?.round === {lines[-1]['round']}")
    replay.terminate()
    assert replay.wait(timeout=LIMIT_S) == 0

    def run(*words):
        done = subprocess.run([place.dynamix, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("report", folder / "shown", "-o", place.folder / "page.html")
    page = (place.folder / "page.html").read_text()
    assert "<td>balanced</td>" in page, page.split("<tbody>")[1][:300]
    exported = json.loads(run("export", folder / "shown", "--tensorboard", place.folder / "logs", "--json"))
    assert exported["rounds"] == len(lines), exported
    file, = (place.folder / "logs" / "shown").glob("events.out.tfevents.*")
    bytes_, events = file.read_bytes(), []
    while bytes_:
        size, = struct.unpack("<Q", bytes_[:8])
        events.append(bytes_[12:12 + size])
        bytes_ = bytes_[16 + size:]
    assert len(events) == 1 + len(lines)
    # Another reader of the format: protoc knows messages without their definition.
    text = subprocess.run(["protoc", "--decode_raw"], input=events[-1], stdout=subprocess.PIPE, timeout=LIMIT_S, check=True).stdout
    assert b'1: "training/loss"' in text and b'1: "network/smoothed_rtt_us"' in text, text


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$job", "shown")


def check_prometheus(place, arbitrator):
    """promtool has nothing to say about the page; every query of the Grafana dashboard finds something."""
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
            assert error.code == 503, (query, error.read())  # it is not ready yet
        except OSError:  # it is not up yet
            pass
        return []

    try:
        dashboard = json.loads((place.source / "packaging" / "grafana" / "dynamix.json").read_text())
        for title, query in queries(dashboard):
            wait_until(lambda: found(query), lambda: f"{title}: nothing for {query}")
    finally:
        server.terminate()
        server.wait()


def main():
    missing = [program for program in ("chromium", "prometheus") if shutil.which(program) is None]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Place(sys.argv[1], sys.argv[2], sys.argv[3], name)
        flags = ["--no-guard", "--dashboard", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--run", f"{name}/served"]
        arbitrator = stack.enter_context(Arbitrator(place, policy="balanced", flags=flags, round_deadline=5, lease=10))
        browser = None if "chromium" in missing else stack.enter_context(Browser(place.folder))
        with training(place, arbitrator):
            enough_records(place, 3)
            if browser:
                check_dashboard(place, browser, arbitrator.hello["dashboard_port"])
            if "prometheus" not in missing:
                check_prometheus(place, arbitrator)
            if browser:
                check_restart(place, browser, arbitrator, arbitrator.hello["dashboard_port"])
        if browser:
            check_afterwards(place, browser)
    if missing:
        print("skipped in part: no " + " and no ".join(missing))


main()
