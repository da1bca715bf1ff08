"""What the tests of the arbitrator's faults share: each is a function (place, wanted) that raises when the job did not end as
it must. In every case the job trains its planned samples, and where advice stayed constant it ends with the same bits as a
job nobody advised, which is `wanted`.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

from arbitrator_processes import Place, baseline


class Skipped(Exception):
    """What this machine lacks for the test."""


def expect_same(result, wanted, advised=True):
    assert result["samples"] == wanted["samples"], (result, wanted)
    assert result["weights"] == wanted["weights"], ("other weights", result, wanted)
    if advised:
        assert result["advised"] > 0, result


def finish_advised(job):
    job.until_more("advised")
    return job.finish()


def issue(place, folder, *what, days="2"):
    """A certificate of the authority in that folder."""
    subprocess.run([str(place.source / "scripts/make-certs"), str(folder), *what], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DYNAMIX_CERT_DAYS": days})


def tls_flags(folder):
    """Of an arbitrator."""
    return ["--tls-ca", str(folder / "ca.crt"), "--tls-cert", str(folder / "arbitrator.crt"), "--tls-key",
            str(folder / "arbitrator.key")]


def run_one(fault, place, wanted):
    own = Place(place.dynamix, place.advised_job, place.source, place.folder / fault.__name__)
    started = time.monotonic()
    problem, verdict = "", "ok"
    try:
        fault(own, wanted)
    except Skipped as reason:
        problem, verdict = f"  {reason}", "skipped"
    except Exception:
        problem, verdict = traceback.format_exc(), "FAILED"
    finally:
        own.end_jobs()
    return verdict, f"{verdict:7} {fault.__name__} ({time.monotonic() - started:.1f} s)", problem


def main(faults, usage):
    """Runs those faults, or the ones named on the command line. Exit code 1 when one failed."""
    if len(sys.argv) < 4:
        sys.exit(usage)
    chosen = [fault for fault in faults if len(sys.argv) == 4 or fault.__name__ in sys.argv[4:]]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Place(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(),
                      pathlib.Path(sys.argv[3]).resolve(), name)
        wanted = baseline(place)
        # They mostly wait, so several at once.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run_one, fault, place, wanted) for fault in chosen]):
                verdict, line, problem = done.result()
                failed += verdict == "FAILED"
                print(line, flush=True)
                if problem:
                    print(problem, flush=True)
    sys.exit(1 if failed else 0)
