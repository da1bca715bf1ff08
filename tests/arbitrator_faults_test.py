#!/usr/bin/env python3
"""Every way an arbitrator can fail a job, with real processes. In every case the job trains its planned samples, and where
advice stayed constant it ends with the same bits as a job nobody advised.

usage: arbitrator_faults_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_processes import SAMPLES, Arbitrator, Job, Place, Relay, baseline  # noqa: E402

SKIPPED = []


def expect_same(result, wanted, advised=True):
    assert result["samples"] == wanted["samples"], (result, wanted)
    assert result["weights"] == wanted["weights"], ("other weights", result, wanted)
    if advised:
        assert result["advised"] > 0, result


def never_started(place, wanted):
    result = Job(place, "127.0.0.1:1").finish()
    expect_same(result, wanted, advised=False)
    assert result["advised"] == 0 and result["failed"] > 0, result


def killed_in_a_call(place, wanted):
    with Arbitrator(place, round_deadline=0.5) as arbitrator:
        job = Job(place, arbitrator.address, size=5)  # a fifth rank never comes, so calls are always pending
        assert job.at_window(2)
        arbitrator.end(signal.SIGKILL)
        result = job.finish()
    expect_same(result, wanted, advised=False)
    assert result["failed"] > 0, result


def killed_and_restarted(place, wanted):
    with Arbitrator(place) as arbitrator:
        job = Job(place, arbitrator.address, pace_ms=20)
        assert job.at_window(4)
        arbitrator.end(signal.SIGKILL)
        arbitrator.start("static")
        result = job.finish()
    expect_same(result, wanted)
    assert result["joined"] > 4, ("the ranks joined again", result)


def stopped_and_continued(place, wanted):
    with Arbitrator(place) as arbitrator:
        job = Job(place, arbitrator.address, pace_ms=12, timeout=0.3)
        assert job.at_window(4)
        arbitrator.send(signal.SIGSTOP)
        assert job.at_window(14), "the job goes on meanwhile"
        arbitrator.send(signal.SIGCONT)
        result = job.finish()
    expect_same(result, wanted)


def black_holed_and_healed(place, wanted):
    """In a network namespace of its own, so that the packets of nobody else are dropped."""
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        SKIPPED.append("black_holed_and_healed: needs root and iptables, for a network namespace")
        return
    script = ("set -e; ip link set lo up; "
              "\"$1\" arbitrator --listen 127.0.0.1:7040 --policy static --lease 2 --round-deadline 0.2 >/dev/null 2>&1 & a=$!; "
              "sleep 1.2; \"$2\" 127.0.0.1:7040 job 4 8000 5 20 timeout=0.3 & j=$!; sleep 0.8; "
              "iptables -A INPUT -p tcp --dport 7040 -j DROP; sleep 0.9; iptables -D INPUT -p tcp --dport 7040 -j DROP; "
              "wait $j; kill $a; wait $a || true")
    done = subprocess.run(["unshare", "-n", "bash", "-c", script, "bash", place.dynamix, place.advised_job], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    expect_same(result, wanted)
    assert result["failed"] > 0, result


def connections_cut(place, wanted):
    with Arbitrator(place) as arbitrator:
        relay = Relay(arbitrator.port)
        job = Job(place, relay.address, pace_ms=8)
        for window in range(2, 20, 3):
            job.at_window(window)
            relay.cut()
        result = job.finish()
        relay.close()
    expect_same(result, wanted)


def a_second_of_round_trip(place, wanted):
    with Arbitrator(place) as arbitrator:
        relay = Relay(arbitrator.port, delay_s=0.5)
        job = Job(place, relay.address, pace_ms=45, timeout=3)
        result = job.finish()
        relay.close()
    expect_same(result, wanted, advised=False)


def restarted_with_another_policy(place, wanted):
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as arbitrator:
        job = Job(place, arbitrator.address, pace_ms=20)
        assert job.at_window(3)
        arbitrator.end()
        arbitrator.start("static:32")
        result = job.finish()
    assert result["batches"] == [32] * 4 and result["samples"] >= SAMPLES, result


def policy_swapped(place, wanted):
    """By SIGHUP (the same file again) and by RPC, without losing a round."""
    with Arbitrator(place, flags=["--no-guard", "--run", str(place.folder / "swapped")]) as arbitrator:
        job = Job(place, arbitrator.address, pace_ms=16)
        assert job.at_window(3)
        arbitrator.send(signal.SIGHUP)
        assert job.at_window(8)
        swap = [place.dynamix, "arbitrator", "--listen", arbitrator.address, "--swap"]
        subprocess.run([*swap, "static:24"], check=True, stdout=subprocess.DEVNULL)
        refused = subprocess.run([*swap, "nonsense"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert refused.returncode == 1 and "nonsense" in refused.stdout, refused
        result = job.finish()
        arbitrator.end()
        rounds = (place.folder / "swapped/job/rounds.jsonl").read_text().splitlines()
        assert len(arbitrator.events("policy_swapped")) == 2, arbitrator.log
    assert result["batches"] == [24] * 4, result
    assert len(rounds) * 4 == result["submitted"] or len(rounds) * 4 + 4 == result["submitted"], (len(rounds), result)


def two_arbitrators(place, wanted):
    """The old one is stopped, a new one takes over, the old one wakes up: it is fenced by its epoch."""
    with Arbitrator(place, policy="static", flags=["--no-guard"]) as old, \
            Arbitrator(place, policy="static:24", flags=["--no-guard"]) as new:
        assert new.hello["epoch"] > old.hello["epoch"]
        job = Job(place, f"{old.address},{new.address}", pace_ms=40, timeout=0.2)
        assert job.at_window(3)
        old.send(signal.SIGSTOP)
        assert job.at_window(9)
        new.send(signal.SIGSTOP)
        old.send(signal.SIGCONT)
        assert job.at_window(14)
        new.send(signal.SIGCONT)
        result = job.finish()
    assert result["batches"] == [24] * 4, result
    assert result["lowest"] == 16 and result["samples"] >= SAMPLES, result
    assert old.events("refused"), "it was asked and knew that it is stale"


def worker_dies_and_restarts(place, wanted):
    """Ranks 2 and 3 are another process, which is killed and started again."""
    with Arbitrator(place) as arbitrator:
        first = Job(place, arbitrator.address, ranks=2, samples=6000, pace_ms=10, first=0, size=4)
        second = Job(place, arbitrator.address, ranks=2, samples=6000, pace_ms=10, first=2, size=4)
        assert second.at_window(5)
        second.kill()
        assert first.at_window(first.windows + 3), "the others go on"
        again = Job(place, arbitrator.address, ranks=2, samples=3000, pace_ms=10, first=2, size=4)
        assert again.finish()["joined"] >= 2
        result = first.finish()
    assert result["samples"] >= 6000 and result["advised"] > 0, result


def straggler(place, wanted):
    with Arbitrator(place, policy="static") as arbitrator:
        result = Job(place, arbitrator.address, pace_ms=2, slow="2:15").finish()
    expect_same(result, wanted)


def advice_reaches_only_some(place, wanted):
    """Two ranks hear an arbitrator, two ask where nobody listens: each follows what it heard, and the job goes on."""
    with Arbitrator(place, policy="static:32", flags=["--no-guard"]) as arbitrator:
        result = Job(place, arbitrator.address, samples=3 * SAMPLES, pace_ms=2, deaf=2).finish()
    assert result["samples"] >= 3 * SAMPLES, result
    assert result["batches"] == [32, 32, 16, 16], result


def connection_flood(place, wanted):
    with Arbitrator(place) as arbitrator:
        sockets = []
        job = Job(place, arbitrator.address, pace_ms=8)
        for i in range(1500):
            s = socket.create_connection(("127.0.0.1", arbitrator.port))
            if i % 3 == 0:
                s.sendall(os.urandom(64))
            sockets.append(s)
        result = job.finish()
        for s in sockets:
            s.close()
        assert arbitrator.process.poll() is None
        again = Job(place, arbitrator.address, name="after", pace_ms=0).finish()
    expect_same(result, wanted)
    expect_same(again, wanted)


def disk_full(place, wanted):
    """No file may grow over 8 KiB: records are lost, advice is not."""
    folder = place.folder / "full"
    prefix = ["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash"]
    with Arbitrator(place, flags=["--run", str(folder)], prefix=prefix) as arbitrator:
        result = Job(place, arbitrator.address, pace_ms=6).finish()
        assert arbitrator.end() == 0
        assert arbitrator.events("record_lost"), arbitrator.log
    expect_same(result, wanted)


def shut_down_with_calls_pending(place, wanted):
    with Arbitrator(place, round_deadline=1.9) as arbitrator:
        job = Job(place, arbitrator.address, size=5, pace_ms=8, timeout=3)  # the fifth rank never comes
        assert job.at_window(3)
        started = time.monotonic()
        assert arbitrator.end(signal.SIGTERM) == 0
        assert time.monotonic() - started < 5
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
        result = Job(place, arbitrator.address, pace_ms=6, environment={"LD_PRELOAD": str(library)}).finish()
    expect_same(result, wanted)


def epoch_grows_when_the_clock_is_set_back(place, wanted):
    folder = place.folder / "epochs"
    folder.mkdir()
    (folder / "epoch").write_text("9000000000000000")
    with Arbitrator(place, flags=["--run", str(folder)]) as arbitrator:
        assert arbitrator.hello["epoch"] == 9000000000000001, arbitrator.hello


def certificates(place, wanted):
    """mTLS: the right certificate is advised; another authority's, an expired one, another job's and none are not."""
    make = str(place.source / "scripts/make-certs")
    own, other = place.folder / "certs", place.folder / "other-certs"

    def issue(folder, *what, days="2"):
        subprocess.run([make, str(folder), *what], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DYNAMIX_CERT_DAYS": days})

    issue(own, "arbitrator", "localhost,127.0.0.1")
    issue(own, "job", "vision")
    issue(own, "job", "speech")
    issue(own, "admin")
    issue(own, "job", "old", days="-1")
    issue(other, "job", "vision")
    tls = ["--tls-ca", str(own / "ca.crt"), "--tls-cert", str(own / "arbitrator.crt"), "--tls-key", str(own / "arbitrator.key")]
    refused = subprocess.run([place.dynamix, "arbitrator", "--listen", "0.0.0.0:0"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 2 and "loopback" in refused.stderr, refused
    token = place.folder / "token"
    token.write_text("open sesame\n")
    with Arbitrator(place, flags=[*tls, "--token-file", str(token), "--no-guard"], host="0.0.0.0") as arbitrator:
        address = f"127.0.0.1:{arbitrator.port}"

        def run(name, folder=own, stem=None, **more):
            if stem is not None:
                more.update(ca=folder / "ca.crt", cert=folder / f"{stem}.crt", key=folder / f"{stem}.key")
            return Job(place, address, name=name, pace_ms=2, token=more.pop("token", "open sesame"), **more).finish()

        expect_same(run("vision", stem="job-vision"), wanted)
        for what, result in {
                "another job's certificate": run("vision", stem="job-speech"),
                "another authority": run("vision", folder=other, stem="job-vision"),
                "an expired certificate": run("old", stem="job-old"),
                "no certificate": run("vision"),
                "the administrator's": run("vision", stem="admin"),
                "a wrong token": run("vision", stem="job-vision", token="guess")}.items():
            assert result["advised"] == 0 and result["failed"] > 0, (what, result)
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
        job = Job(place, arbitrator.address, pace_ms=6, samples=40000)
        learner = folder / "job/learner/learner.safetensors"
        while not learner.exists() or not (folder / "job/learner/policy.safetensors").exists():
            assert job.process.poll() is None, "no update during the job"
            time.sleep(0.01)
        arbitrator.end(signal.SIGKILL)
        arbitrator.start("default")
        while not arbitrator.events("learned"):
            assert job.process.poll() is None, ("no update after the restart", arbitrator.log)
            time.sleep(0.01)
        assert any("goes on after update" in line for line in arbitrator.events("learner_restored")), arbitrator.log
        result = job.finish()
        arbitrator.end(signal.SIGKILL)
        learner.write_bytes(learner.read_bytes()[:1000])
        arbitrator.start("default")
        again = Job(place, arbitrator.address, pace_ms=2).finish()
        assert any("learner.safetensors" in line for line in arbitrator.events("learner_restored")), arbitrator.log
    assert result["samples"] >= 40000 and result["advised"] > 0, result
    assert again["samples"] >= SAMPLES and again["advised"] > 0, again


def metrics_are_served(place, wanted):
    with Arbitrator(place, flags=["--metrics", "127.0.0.1:0"]) as arbitrator:
        expect_same(Job(place, arbitrator.address, name="seen", pace_ms=4).finish(), wanted)
        time.sleep(0.2)  # counts are set twenty times a second
        text = urllib.request.urlopen(f"http://127.0.0.1:{arbitrator.hello['metrics_port']}/metrics", timeout=10).read().decode()
    for line in ('dynamix_rounds_total{job="seen"} 25', 'dynamix_local_batch{job="seen",rank="3"} 16', "dynamix_reports_total 100"):
        assert line in text, (line, text)


FAULTS = [metrics_are_served, certificates, learns_online_and_survives, two_arbitrators, black_holed_and_healed, a_second_of_round_trip, never_started,
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
