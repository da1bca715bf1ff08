#!/usr/bin/env python3
"""Every way an arbitrator can fail a job, with real processes. In every case the job trains its planned samples, and where
advice stayed constant it ends with the same bits as a job nobody advised.

usage: arbitrator_faults_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_processes import LIMIT_S, SAMPLES, Arbitrator, Job, Place, Relay, baseline, wait_until  # noqa: E402

SKIPPED = []


def expect_same(result, wanted, advised=True):
    assert result["samples"] == wanted["samples"], (result, wanted)
    assert result["weights"] == wanted["weights"], ("other weights", result, wanted)
    if advised:
        assert result["advised"] > 0, result


def finish_advised(job):
    job.until_more("advised")
    return job.finish()


def never_started(place, wanted):
    job = Job(place, "127.0.0.1:1")
    job.until_more("failed")
    result = job.finish()
    expect_same(result, wanted, advised=False)
    assert result["advised"] == 0, result


def killed_in_a_call(place, wanted):
    with Arbitrator(place, round_deadline=100, lease=200) as arbitrator:
        job = Job(place, arbitrator.address, size=5, timeout=60)  # a fifth rank never comes, so calls are always pending
        job.until(lambda: job.seen["joined"] >= 4)
        arbitrator.end(signal.SIGKILL)
        job.until_more("failed")
        result = job.finish()
    expect_same(result, wanted, advised=False)


def killed_and_restarted(place, wanted):
    with Arbitrator(place) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        arbitrator.end(signal.SIGKILL)
        job.until_more("failed")
        arbitrator.start("static")
        job.until_more("joined")
        result = finish_advised(job)
    expect_same(result, wanted)


def stopped_and_continued(place, wanted):
    with Arbitrator(place) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        arbitrator.send(signal.SIGSTOP)
        job.until_more("failed")
        job.at_window(job.windows + 3)  # the job goes on meanwhile
        arbitrator.send(signal.SIGCONT)
        result = finish_advised(job)
    expect_same(result, wanted)


def black_holed_and_healed(place, wanted):
    """In a network namespace of its own, so that the packets of nobody else are dropped."""
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        SKIPPED.append("black_holed_and_healed: needs root and iptables, for a network namespace")
        return
    # Holds the namespace until its input ends, at the latest with this process.
    holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "up\n"
        inside = ["nsenter", "-t", str(holder.pid), "-n"]
        with Arbitrator(place, prefix=inside) as arbitrator:
            job = Job(place, arbitrator.address, prefix=inside)
            rule = ["INPUT", "-p", "tcp", "--dport", str(arbitrator.port), "-j", "DROP"]
            job.until_more("advised")
            subprocess.run([*inside, "iptables", "-A", *rule], check=True)
            job.until_more("failed")
            subprocess.run([*inside, "iptables", "-D", *rule], check=True)
            result = finish_advised(job)
    expect_same(result, wanted)


def connections_cut(place, wanted):
    with Arbitrator(place) as arbitrator:
        relay = Relay(arbitrator.port)
        job = Job(place, relay.address)
        for window in range(2, 20, 3):
            job.at_window(window)
            relay.cut()
        result = finish_advised(job)
        relay.close()
    expect_same(result, wanted)


def a_second_of_round_trip(place, wanted):
    with Arbitrator(place) as arbitrator:
        relay = Relay(arbitrator.port, delay_s=0.5)
        result = finish_advised(Job(place, relay.address, timeout=20))
        relay.close()
    expect_same(result, wanted)


def restarted_with_another_policy(place, wanted):
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        arbitrator.end()
        arbitrator.start("static:32")
        job.until_batches(32, 32, 32, 32)
        result = job.finish()
    assert result["batches"] == [32] * 4 and result["samples"] >= SAMPLES, result


def policy_swapped(place, wanted):
    """By SIGHUP (the same file again) and by RPC, without losing a round."""
    flags = ["--no-guard", "--run", str(place.folder / "swapped")]
    with Arbitrator(place, flags=flags, round_deadline=50, lease=100) as arbitrator:
        job = Job(place, arbitrator.address, timeout=60, hold=0)  # each window is answered before the next
        job.at_window(3)
        arbitrator.send(signal.SIGHUP)
        arbitrator.until_event("policy_swapped")
        job.at_window(job.windows + 3)
        swap = [place.dynamix, "arbitrator", "--listen", arbitrator.address, "--swap"]
        subprocess.run([*swap, "static:24"], check=True, stdout=subprocess.DEVNULL)
        refused = subprocess.run([*swap, "nonsense"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert refused.returncode == 1 and "nonsense" in refused.stdout, refused
        job.until_batches(24, 24, 24, 24)
        held = job.windows
        result = job.finish()
        arbitrator.end()
        rounds = [json.loads(line) for line in (place.folder / "swapped/job/rounds.jsonl").read_text().splitlines()]
        assert len(arbitrator.events("policy_swapped")) == 2, arbitrator.log
    assert result["batches"] == [24] * 4 and result["failed"] == 0, result
    windows = [line["round"] for line in rounds]
    assert windows[:held - 1] == list(range(held - 1)), (held, windows)
    assert all(None not in line["reports"] and len(line["reports"]) == 4 for line in rounds[:held - 1]), rounds


def two_arbitrators(place, wanted):
    """The old one is stopped, a new one takes over, the old one wakes up: it is fenced by its epoch."""
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as old, \
            Arbitrator(place, policy="static:24", flags=["--no-guard"]) as new:
        assert new.hello["epoch"] > old.hello["epoch"]
        job = Job(place, f"{old.address},{new.address}")
        job.until_more("advised")
        old.send(signal.SIGSTOP)
        job.until_batches(24, 24, 24, 24)
        new.send(signal.SIGSTOP)
        old.send(signal.SIGCONT)
        old.until_event("refused")  # it was asked and knew that it is stale
        new.send(signal.SIGCONT)
        result = finish_advised(job)
    assert result["batches"] == [24] * 4, result
    assert result["lowest"] == 16 and result["samples"] >= SAMPLES, result


def worker_dies_and_restarts(place, wanted):
    """Ranks 2 and 3 are another process, which is killed and started again."""
    with Arbitrator(place) as arbitrator:
        first = Job(place, arbitrator.address, ranks=2, samples=6000, first=0, size=4)
        second = Job(place, arbitrator.address, ranks=2, samples=6000, first=2, size=4)
        second.until_more("advised")
        second.kill()
        first.at_window(first.windows + 3)  # the others go on
        again = Job(place, arbitrator.address, ranks=2, samples=3000, first=2, size=4)
        again.until(lambda: again.seen["joined"] >= 2)
        again.finish()
        result = finish_advised(first)
    assert result["samples"] >= 6000, result


def straggler(place, wanted):
    with Arbitrator(place, policy="static") as arbitrator:
        result = finish_advised(Job(place, arbitrator.address, pace_ms=2, slow="2:15"))
    expect_same(result, wanted)


def advice_reaches_only_some(place, wanted):
    """Two ranks hear an arbitrator, two ask where nobody listens: each follows what it heard, and the job goes on."""
    with Arbitrator(place, policy="static:32", flags=["--no-guard"]) as arbitrator:
        job = Job(place, arbitrator.address, pace_ms=2, deaf=2)
        job.until_batches(32, 32, 16, 16)
        result = job.finish()
    assert result["samples"] >= SAMPLES, result
    assert result["batches"] == [32, 32, 16, 16], result


def connection_flood(place, wanted):
    with Arbitrator(place) as arbitrator:
        sockets = []
        job = Job(place, arbitrator.address)
        for i in range(1500):
            s = socket.create_connection(("127.0.0.1", arbitrator.port))
            if i % 3 == 0:
                s.sendall(os.urandom(64))
            sockets.append(s)
        result = finish_advised(job)
        for s in sockets:
            s.close()
        assert arbitrator.process.poll() is None
        again = finish_advised(Job(place, arbitrator.address, name="after", pace_ms=0))
    expect_same(result, wanted)
    expect_same(again, wanted)


def disk_full(place, wanted):
    """No file may grow over 8 KiB: records are lost, advice is not."""
    folder = place.folder / "full"
    prefix = ["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash"]
    with Arbitrator(place, flags=["--run", str(folder)], prefix=prefix) as arbitrator:
        job = Job(place, arbitrator.address)
        arbitrator.until_event("record_lost")
        result = finish_advised(job)
        assert arbitrator.end() == 0
    expect_same(result, wanted)


def shut_down_with_calls_pending(place, wanted):
    with Arbitrator(place, round_deadline=500, lease=1000) as arbitrator:
        job = Job(place, arbitrator.address, size=5, timeout=600)  # the fifth rank never comes
        job.until(lambda: job.seen["joined"] >= 4)
        assert arbitrator.end(signal.SIGTERM) == 0, "and long before the round's deadline"
        result = job.finish()
    expect_same(result, wanted, advised=False)


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump(void) { static int n; return ++n % 7 < 3 ? 86400L * 400 : -86400L * 400; }
int clock_gettime(clockid_t id, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(id, t);
  if (id == CLOCK_REALTIME) t->tv_sec += jump();
  return code;
}
"""


def clock_jumps(place, wanted):
    """The wall clock of the job leaps by 400 days, forwards and back, every few readings."""
    library = place.folder / "clock.so"
    (place.folder / "clock.c").write_text(CLOCK)
    subprocess.run(["c++", "-x", "c", "-shared", "-fPIC", "-o", library, place.folder / "clock.c", "-ldl"], check=True)
    with Arbitrator(place) as arbitrator:
        result = finish_advised(Job(place, arbitrator.address, environment={"LD_PRELOAD": str(library)}))
    expect_same(result, wanted)


def epoch_grows_when_the_clock_is_set_back(place, wanted):
    folder = place.folder / "epochs"
    folder.mkdir()
    (folder / "epoch").write_text("9000000000000000")
    with Arbitrator(place, flags=["--run", str(folder)]) as arbitrator:
        assert arbitrator.hello["epoch"] == 9000000000000001, arbitrator.hello


def issue(place, folder, *what, days="2"):
    """A certificate of the authority in that folder."""
    subprocess.run([str(place.source / "scripts/make-certs"), str(folder), *what], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DYNAMIX_CERT_DAYS": days})


def tls_flags(folder):
    """Of an arbitrator."""
    return ["--tls-ca", str(folder / "ca.crt"), "--tls-cert", str(folder / "arbitrator.crt"), "--tls-key",
            str(folder / "arbitrator.key")]


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


def learns_online_and_survives(place, wanted):
    """--learn: killed in the middle, it goes on after the last update; a torn checkpoint costs one update."""
    folder = place.folder / "learning"
    flags = ["--learn", "--learn-steps", "4", "--no-guard", "--run", str(folder)]
    with Arbitrator(place, policy="default", flags=flags) as arbitrator:
        job = Job(place, arbitrator.address, samples=40000)
        learner = folder / "job/learner/learner.safetensors"
        job.until(lambda: learner.exists() and (folder / "job/learner/policy.safetensors").exists())
        arbitrator.end(signal.SIGKILL)
        arbitrator.start("default")
        arbitrator.until_event("learner_restored", "goes on after update")
        arbitrator.until_event("learned")
        result = job.finish()
        arbitrator.end(signal.SIGKILL)
        learner.write_bytes(learner.read_bytes()[:1000])
        arbitrator.start("default")
        again = finish_advised(Job(place, arbitrator.address, pace_ms=2))
        arbitrator.until_event("learner_restored", "learner.safetensors")
    assert result["samples"] >= 40000 and result["advised"] > 0, result
    assert again["samples"] >= SAMPLES and again["advised"] > 0, again


def metrics_are_served(place, wanted):
    records = place.folder / "metrics/seen/rounds.jsonl"
    with Arbitrator(place, flags=["--metrics", "127.0.0.1:0", "--run", str(place.folder / "metrics")]) as arbitrator:
        result = finish_advised(Job(place, arbitrator.address, name="seen"))
        expect_same(result, wanted)

        def rounds():
            return len(records.read_text().splitlines()) if records.exists() else 0

        # Counts are set twenty times a second, and records are written when there is time.
        wait_until(lambda: f'dynamix_rounds_total{{job="seen"}} {rounds()}\n' in arbitrator.metrics(), arbitrator.metrics)
        text = arbitrator.metrics()
    assert 'dynamix_local_batch{job="seen",rank="3"} 16\n' in text, text
    reports = int(re.search(r"^dynamix_reports_total (\d+)$", text, re.M)[1])
    assert result["advised"] <= reports, (result, text)


def silent_scrapers(place, wanted):
    """Connections to the metrics page that say nothing keep nobody else from it."""
    with Arbitrator(place, flags=["--metrics", "127.0.0.1:0"]) as arbitrator:
        silent = [socket.create_connection(("127.0.0.1", arbitrator.hello["metrics_port"])) for _ in range(4)]
        silent[0].sendall(b"GET /met")
        page = urllib.request.urlopen(f"http://127.0.0.1:{arbitrator.hello['metrics_port']}/metrics", timeout=20).read()
        assert b"dynamix_jobs 0" in page, page
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


def log_that_nobody_reads(place, wanted):
    """stderr is a pipe whose reader has stopped, or is gone: a thousand refused calls later all is as before."""
    token = place.folder / "token"
    token.write_text("right\n")
    for reader in ("stopped", "gone"):
        flags = ["--token-file", str(token), "--metrics", "127.0.0.1:0"]
        with Arbitrator(place, flags=flags, reader=reader) as arbitrator:
            noise = Job(place, arbitrator.address, name="noise", ranks=64, token="wrong", breaker=0.01, hold=0)
            wait_until(lambda: arbitrator.count("dynamix_refused_total") > 1000, arbitrator.metrics)
            result = finish_advised(Job(place, arbitrator.address, name=reader, token="right"))
            noise.kill()
            assert arbitrator.end() == 0
        expect_same(result, wanted)


def policy_file_that_cannot_be_read(place, wanted):
    """SIGHUP while the policy's path is a loop of links, a folder, or nothing: the policy in force stays."""
    policy = place.folder / "policy.safetensors"
    policy.symlink_to(place.source / "policies/default.safetensors")
    with Arbitrator(place, policy=str(policy)) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        for number, make in enumerate((lambda: policy.symlink_to(policy), policy.mkdir, lambda: None), 1):
            policy.unlink() if policy.is_symlink() else policy.rmdir()
            make()
            arbitrator.send(signal.SIGHUP)
            wait_until(lambda: len(arbitrator.events("policy_kept")) == number, lambda: arbitrator.log)
            job.until_more("advised")
        job.finish()
        assert arbitrator.end() == 0


def tokens_that_admit_everybody(place, wanted):
    for text in ("\n", "\r\n\n", "a\nb\n"):
        token = place.folder / "token"
        token.write_text(text)
        refused = subprocess.run([place.dynamix, "arbitrator", "--listen", "127.0.0.1:0", "--token-file", str(token)],
                                 stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert refused.returncode == 2 and "--token-file" in refused.stderr, (text, refused)


def descriptors_run_out(place, wanted):
    """More connections than the process may have files: those that are there go on, and when it is over all is as before."""
    prefix = ["bash", "-c", "ulimit -Sn 160; ulimit -Hn 160; exec \"$@\"", "bash"]
    with Arbitrator(place, prefix=prefix, flags=["--run", str(place.folder / "records")]) as arbitrator:
        job = Job(place, arbitrator.address)
        job.until_more("advised")
        flood = [socket.create_connection(("127.0.0.1", arbitrator.port)) for _ in range(400)]
        arbitrator.until_event("turned_away")
        job.until_more("advised")
        for each in flood:
            each.close()
        again = finish_advised(Job(place, arbitrator.address, name="after", pace_ms=0))
        result = finish_advised(job)
        assert not arbitrator.events("record_lost"), arbitrator.log
    expect_same(result, wanted)
    expect_same(again, wanted)


def two_trainings_of_one_name(place, wanted):
    """The second is refused while the first runs, and advised when it has ended."""
    with Arbitrator(place) as arbitrator:
        first = Job(place, arbitrator.address, run=111)
        first.until_more("advised")
        second = Job(place, arbitrator.address, run=222)
        second.until_more("failed")
        arbitrator.until_event("refused", "another run of job job")
        first.until_more("advised")
        expect_same(first.finish(), wanted)
        expect_same(finish_advised(second), wanted)


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


FAULTS = [metrics_are_served, silent_scrapers, metrics_beyond_loopback, log_that_nobody_reads,
          policy_file_that_cannot_be_read, tokens_that_admit_everybody, descriptors_run_out, two_trainings_of_one_name,
          certificates_are_rotated, certificates, learns_online_and_survives, two_arbitrators, black_holed_and_healed, a_second_of_round_trip, never_started,
          killed_in_a_call, killed_and_restarted, stopped_and_continued, connections_cut, restarted_with_another_policy,
          policy_swapped, worker_dies_and_restarts, straggler, advice_reaches_only_some, connection_flood, disk_full,
          shut_down_with_calls_pending, clock_jumps, epoch_grows_when_the_clock_is_set_back]


def run(fault, place, wanted):
    own = Place(place.dynamix, place.advised_job, place.source, place.folder / fault.__name__)
    started = time.monotonic()
    try:
        fault(own, wanted)
        return fault.__name__, time.monotonic() - started, None
    except Exception:
        return fault.__name__, time.monotonic() - started, traceback.format_exc()
    finally:
        own.end_jobs()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    chosen = [fault for fault in FAULTS if len(sys.argv) == 4 or fault.__name__ in sys.argv[4:]]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Place(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(),
                      pathlib.Path(sys.argv[3]).resolve(), name)
        wanted = baseline(place)
        # They mostly wait, so several at once.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run, fault, place, wanted) for fault in chosen]):
                fault, seconds, problem = done.result()
                print(f"{'FAILED' if problem else 'ok':6} {fault} ({seconds:.1f} s)", flush=True)
                if problem:
                    failed += 1
                    print(problem, flush=True)
    for line in SKIPPED:
        print(f"skipped {line}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
