#!/usr/bin/env python3
"""Who may speak to the arbitrator and read its metrics: certificates, tokens, scrapers, with real processes.

usage: arbitrator_access_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_faults import expect_same, finish_advised, issue, main, tls_flags  # noqa: E402
from arbitrator_processes import LIMIT_S, Arbitrator, Job, wait_until  # noqa: E402


def certificates(place, wanted):
    """mTLS: the right certificate is advised; another authority's, an expired one, another job's and none are not."""
    own, other = place.folder / "certs", place.folder / "other-certs"
    issue(place, own, "arbitrator", "localhost,127.0.0.1")
    issue(place, own, "job", "vision")
    issue(place, own, "job", "speech")
    issue(place, own, "admin")
    issue(place, own, "job", "old", days="-1")
    issue(place, other, "job", "vision")
    tls = tls_flags(own)
    refused = subprocess.run([place.dynamix, "arbitrator", "--listen", "0.0.0.0:0"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 2 and "loopback" in refused.stderr, refused
    token = place.folder / "token"
    token.write_text("open sesame\n")
    with Arbitrator(place, flags=[*tls, "--token-file", str(token), "--no-guard"], host="0.0.0.0") as arbitrator:
        address = f"127.0.0.1:{arbitrator.port}"

        def run(name, until="failed", folder=own, stem=None, **more):
            if stem is not None:
                more.update(ca=folder / "ca.crt", cert=folder / f"{stem}.crt", key=folder / f"{stem}.key")
            job = Job(place, address, name=name, pace_ms=2, token=more.pop("token", "open sesame"), **more)
            job.until_more(until)
            return job.finish()

        expect_same(run("vision", until="advised", stem="job-vision"), wanted)
        for what, result in {
                "another job's certificate": run("vision", stem="job-speech"),
                "another authority": run("vision", folder=other, stem="job-vision"),
                "an expired certificate": run("old", stem="job-old"),
                "no certificate": run("vision"),
                "the administrator's": run("vision", stem="admin"),
                "a wrong token": run("vision", stem="job-vision", token="guess")}.items():
            assert result["advised"] == 0, (what, result)
            expect_same(result, wanted, advised=False)

        def swap(stem):
            return subprocess.run([place.dynamix, "arbitrator", "--listen", address, "--swap", "static:20", "--token-file",
                                   str(token), "--tls-ca", str(own / "ca.crt"), "--tls-cert", str(own / f"{stem}.crt"),
                                   "--tls-key", str(own / f"{stem}.key")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        assert "not an administrator" in swap("job-vision").stderr
        assert swap("admin").returncode == 0


def certificates_are_rotated(place, wanted):
    """SIGHUP loads them; files that do not fit together leave those before in force."""
    folder, old, new = place.folder / "certs", place.folder / "old", place.folder / "new"
    for made in (old, new):
        issue(place, made, "arbitrator", "localhost,127.0.0.1")
        issue(place, made, "job", "vision")
    shutil.copytree(old, folder)

    def run(arbitrator, made, until):
        files = {"ca": made / "ca.crt", "cert": made / "job-vision.crt", "key": made / "job-vision.key"}
        job = Job(place, f"127.0.0.1:{arbitrator.port}", name="vision", pace_ms=2, **files)
        job.until_more(until)
        return job.finish()

    with Arbitrator(place, flags=tls_flags(folder), host="0.0.0.0") as arbitrator:
        expect_same(run(arbitrator, old, "advised"), wanted)
        shutil.copytree(new, folder, dirs_exist_ok=True)
        shutil.copy(old / "arbitrator.key", folder / "arbitrator.key")
        arbitrator.send(signal.SIGHUP)
        arbitrator.until_event("certificates_kept", "the key is not that of the certificate")
        expect_same(run(arbitrator, old, "advised"), wanted)
        shutil.copy(new / "arbitrator.key", folder / "arbitrator.key")
        arbitrator.send(signal.SIGHUP)
        arbitrator.until_event("certificates_loaded")
        expect_same(run(arbitrator, new, "advised"), wanted)
        assert run(arbitrator, old, "failed")["advised"] == 0


def tokens_that_admit_everybody(place, wanted):
    for text in ("\n", "\r\n\n", "a\nb\n"):
        token = place.folder / "token"
        token.write_text(text)
        refused = subprocess.run([place.dynamix, "arbitrator", "--listen", "127.0.0.1:0", "--token-file", str(token)],
                                 stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert refused.returncode == 2 and "--token-file" in refused.stderr, (text, refused)


def metrics_are_served(place, wanted):
    records = place.folder / "metrics/seen/rounds.jsonl"
    with Arbitrator(place, flags=["--metrics", "127.0.0.1:0", "--run", str(place.folder / "metrics")]) as arbitrator:
        result = finish_advised(Job(place, arbitrator.address, name="seen"))
        expect_same(result, wanted)

        def rounds():
            return len(records.read_text().splitlines()) if records.exists() else 0

        def complete(text):
            reports = int(re.search(r"^dynamix_reports_total (\d+)$", text, re.M)[1])
            return result["advised"] <= reports and f'dynamix_rounds_total{{job="seen"}} {rounds()}\n' in text

        # Counts are set twenty times a second, and records are written when there is time.
        wait_until(lambda: complete(arbitrator.metrics()), arbitrator.metrics)
        text = arbitrator.metrics()
    assert 'dynamix_local_batch{job="seen",rank="3"} 16\n' in text, text


def silent_scrapers(place, wanted):
    """Connections to the metrics page that say nothing, more than are served at once, keep nobody else from it."""
    with Arbitrator(place, flags=["--metrics", "127.0.0.1:0"]) as arbitrator:
        silent = [socket.create_connection(("127.0.0.1", arbitrator.hello["metrics_port"])) for _ in range(300)]
        silent[0].sendall(b"GET /met")
        begun = time.monotonic()
        page = arbitrator.metrics()
        assert "dynamix_jobs 0" in page, page
        assert time.monotonic() - begun < 30, "one after the other they take more than a minute"
        for each in silent:
            each.close()


def metrics_beyond_loopback(place, wanted):
    """Refused without certificates; with them, for those who may read metrics."""
    open_to_all = [place.dynamix, "arbitrator", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"]
    refused = subprocess.run(open_to_all, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert refused.returncode == 2 and "loopback" in refused.stderr, refused
    own = place.folder / "certs"
    for what in (("arbitrator", "localhost,127.0.0.1"), ("job", "vision"), ("metrics",), ("admin",)):
        issue(place, own, *what)
    with Arbitrator(place, flags=[*tls_flags(own), "--metrics", "0.0.0.0:0"], host="0.0.0.0") as arbitrator:
        def context(stem=None):
            made = ssl.create_default_context(cafile=own / "ca.crt")
            if stem:
                made.load_cert_chain(own / f"{stem}.crt", own / f"{stem}.key")
            return made

        for stem in ("metrics", "admin"):
            assert "dynamix_jobs 0" in arbitrator.metrics(context=context(stem))
        for stem in ("job-vision", None):
            try:
                raise AssertionError(arbitrator.metrics(context=context(stem)))
            except (OSError, urllib.error.URLError):
                pass


if __name__ == "__main__":
    main([certificates, certificates_are_rotated, tokens_that_admit_everybody, metrics_are_served, silent_scrapers,
          metrics_beyond_loopback], __doc__)
