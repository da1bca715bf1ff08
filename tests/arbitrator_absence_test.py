#!/usr/bin/env python3
"""The arbitrator, the network or a worker is dead, stopped, slow or out of time, with real processes: the job goes on.

usage: arbitrator_absence_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_faults import Skipped, expect_same, finish_advised, main  # noqa: E402
from arbitrator_processes import SAMPLES, Arbitrator, Job, Relay  # noqa: E402


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
        raise Skipped("needs root and iptables, for a network namespace")
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


def shut_down_with_calls_pending(place, wanted):
    with Arbitrator(place, round_deadline=500, lease=1000) as arbitrator:
        job = Job(place, arbitrator.address, size=5, timeout=600)  # the fifth rank never comes
        job.until(lambda: job.seen["joined"] >= 4)
        assert arbitrator.end(signal.SIGTERM) == 0, "and long before the round's deadline"
        result = job.finish()
    expect_same(result, wanted, advised=False)


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


if __name__ == "__main__":
    main([never_started, killed_in_a_call, killed_and_restarted, stopped_and_continued, black_holed_and_healed,
          connections_cut, a_second_of_round_trip, shut_down_with_calls_pending, worker_dies_and_restarts, straggler,
          advice_reaches_only_some, clock_jumps, epoch_grows_when_the_clock_is_set_back], __doc__)
