#!/usr/bin/env python3
"""The arbitrator runs out of something (connections, descriptors, disk, a reader of its log), with real processes.

usage: arbitrator_resources_test.py DYNAMIX ADVISED_JOB SOURCE_DIR [NAME...]
"""
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arbitrator_faults import expect_same, finish_advised, main  # noqa: E402
from arbitrator_processes import Arbitrator, Job, wait_until  # noqa: E402


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


if __name__ == "__main__":
    main([log_that_nobody_reads, descriptors_run_out, connection_flood, disk_full], __doc__)
