#!/usr/bin/env python3
"""A training job on several hosts, as docs/cluster.md describes it: three hosts with addresses and names of their own and no
shared loopback, one of which runs the arbitrator with mutual TLS. Ranks are started by hand; the first host dies, then a
rank, and the others go on. Without shared storage a job trains as well, and says so when it cannot be resumed. mpirun and
torchrun start ranks on two hosts.

usage: hosts_test.py DYNAMIX FASHION_MNIST_FOLDER SOURCE_DIR
"""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from emulated_hosts import PATIENCE_S, Hosts, refusal, tell, wait_until  # noqa: E402

sys.path.insert(0, str(pathlib.Path(sys.argv[3]) / "dynamix/cli"))
from small_job import workload  # noqa: E402

NAMES = ("a", "b", "c")
JOB = "vision"
INTERRUPTED = 130
READ_METRICS = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2] + "/ca.crt")
context.load_cert_chain(sys.argv[2] + "/metrics.crt", sys.argv[2] + "/metrics.key")
print(urllib.request.urlopen(sys.argv[1], context=context, timeout=60).read().decode())
"""


class Job:
    """One rank per host, started as an administrator would: variables and a command on each."""

    def __init__(self, program, hosts, work, name, *more, names=NAMES, folders=None):
        self.work, self.name, self.ranks = work, name, {}
        words = [program, "train", "--backend", "live", "--workers", str(len(names)), "--workload", work / "long.toml",
                 "--window", "5", "--start-batch", "8", "--data", sys.argv[2], *more]
        for rank, host in enumerate(names):
            place = {"RANK": rank, "WORLD_SIZE": len(names), "MASTER_ADDR": names[0], "MASTER_PORT": 29500}
            with open(self.log(rank), "w") as log:
                self.ranks[rank] = hosts[host].start(
                    *words, stdout=log, stderr=log, folder=folders[host] if folders else work,
                    env={**os.environ, "OMP_NUM_THREADS": "1", **{variable: str(value) for variable, value in place.items()}})

    def log(self, rank):
        return self.work / f"{self.name}-{rank}.log"

    def said(self):
        return "".join(self.log(rank).read_text() for rank in self.ranks)

    def wait_for(self, what):
        wait_until(lambda: what() or any(rank.poll() not in (None, -signal.SIGKILL) for rank in self.ranks.values()), self.said)
        assert what(), self.said()

    def wait_for_words(self, words):
        self.wait_for(lambda: words in self.said())

    def codes(self):
        return {rank: process.wait(timeout=PATIENCE_S) for rank, process in self.ranks.items()}

    def kill(self):
        for process in self.ranks.values():
            process.kill()
            process.wait()


def rounds(path):
    """What is written so far; without the line being written just now."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def listeners(host):
    """Addresses that TCP ports of a host listen on."""
    table = host.run("ss", "-Hltn", stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[3].rsplit(":", 1)[0] for line in table.splitlines()}


def advised_and_elastic(program, hosts, work):
    """Shared storage and an arbitrator with mutual TLS. The first host dies without a word, then a rank is killed."""
    source, certs, arbiter = pathlib.Path(sys.argv[3]), work / "certs", hosts["b"].address
    for words in (("arbitrator", f"b,{arbiter}"), ("job", JOB), ("metrics",)):
        subprocess.run([source / "scripts/make-certs", certs, *words], check=True, stdout=subprocess.DEVNULL)

    def tls(name):
        return ["--tls-ca", certs / "ca.crt", "--tls-cert", certs / f"{name}.crt", "--tls-key", certs / f"{name}.key"]

    with open(work / "arbitrator.log", "w") as log:
        arbitrator = hosts["b"].start(program, "arbitrator", "--policy", "balanced", "--listen", "0.0.0.0:7040", "--metrics",
                                      "0.0.0.0:9100", "--run", work / "arbitrator", *tls("arbitrator"), stdout=log, stderr=log)
    job = Job(program, hosts, work, "elastic", "--elastic", "--timeout", "8", "--run", work / "elastic", "--job", JOB,
              "--advisor", "b:7040", *tls(f"job-{JOB}"))
    record = work / "arbitrator" / JOB / "rounds.jsonl"

    def served():
        """Waits for rounds of those who are there."""
        before = len(rounds(record))
        job.wait_for(lambda: len(rounds(record)) > before + 3)

    try:
        served()
        for name in NAMES:
            assert "127.0.0.1" not in listeners(hosts[name]), (name, listeners(hosts[name]))
        page = hosts["c"].run("/usr/bin/python3", "-c", READ_METRICS, f"https://{arbiter}:9100/metrics", certs,
                              stdout=subprocess.PIPE, text=True).stdout
        assert f'dynamix_rounds_total{{job="{JOB}"}}' in page, page
        hosts["a"].pull_the_plug()
        job.wait_for_words("the team is now 2 of 3 workers: 1, 2")
        served()
        tell(job.ranks[2], signal.SIGKILL)
        job.wait_for_words("the team is now 1 of 3 workers: 1")
        served()
        tell(job.ranks[1], signal.SIGTERM)
        assert job.codes()[1] == INTERRUPTED, job.said()
        assert (work / "elastic/checkpoint.bin").exists(), job.said()
    finally:
        job.kill()
        arbitrator.kill()
        arbitrator.wait()


def without_shared_storage(program, hosts, work):
    """Only the first host has the run's folder. The job trains; it cannot be resumed, and every rank says why."""
    own = {name: work / f"disk-{name}" for name in NAMES[1:]}
    for folder in own.values():
        folder.mkdir()
    names = tuple(own)
    plain = ("--run", "run", "--samples", "2000", "--full")
    job = Job(program, hosts, work, "plain", *plain, names=names, folders=own)
    try:
        assert set(job.codes().values()) == {0}, job.said()
        left = {name: sorted(path.name for path in (own[name] / "run").glob("*")) for name in names}
        assert "summary.json" in left["b"] and not left["c"], (left, job.said())
        (own["b"] / "run/summary.json").unlink()
        again = Job(program, hosts, work, "again", *plain, "--resume", names=names, folders=own)
        codes = again.codes()
        assert 0 not in codes.values() and again.said().count("all ranks need the same folder") == 2, (codes, again.said())
    finally:
        job.kill()


def short(program, work, *more):
    """The command of a job of a second, which leaves nothing."""
    return [program, "train", "--backend", "live", "--workload", work / "long.toml", "--window", "5", "--start-batch", "8", "--data",
            sys.argv[2], "--samples", "2000", "--full", "--no-record", *more]


def under_mpirun(program, hosts, work):
    """mpirun on the first host; its agent, which would be ssh, enters the others."""
    agent = work / "agent"
    cases = "".join(f"{host.name}) first={host.first} ;;\n" for host in hosts.by_name.values())
    agent.write_text(f'#!/bin/sh\ncase $1 in\n{cases}esac\nshift\nexec nsenter -t $first -n -u -i -m -p -- sh -c "$*"\n')
    agent.chmod(0o700)
    # Without the host's processes and mounts: the agent needs the machine's.
    mpirun = ["nsenter", "-t", str(hosts["a"].first), "-n", "-u", "-i", "--", "mpirun", "--allow-run-as-root", "--mca",
              "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", "eth0", "--host", "a,b", "-n", "2", "-x",
              f"MASTER_ADDR={hosts['a'].address}", "-x", "OMP_NUM_THREADS=1", *short(program, work)]
    done = subprocess.run(list(map(str, mpirun)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and "batches 8,8" in done.stdout, done.stdout


def under_torchrun(program, hosts, work):
    """With its usual rendezvous, in which torchrun itself listens at the first host's port."""
    agents = []
    for number, name in enumerate(("a", "b")):
        # -r 1 -t 1: Debian's torchrun does not start without.
        words = ["/usr/bin/python3", "-m", "torch.distributed.run", "-r", "1", "-t", "1", "--log_dir", work / f"torchrun-{name}",
                 "--nnodes", "2", "--node_rank", number, "--nproc_per_node", "1", "--master_addr", "a", "--master_port", "29400",
                 "--no_python", *short(program, work)]
        with open(work / f"torchrun-{name}.log", "w") as log:
            agents.append(hosts[name].start(*words, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}))
    codes = [agent.wait(timeout=PATIENCE_S) for agent in agents]
    said = "".join((work / f"torchrun-{name}.log").read_text() for name in ("a", "b"))
    assert codes == [0, 0] and "batches 8,8" in said, (codes, said)


def main():
    reason = refusal()
    if reason:
        print(f"skipped: {reason}")
        return 77
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as two:
        def play(check):
            work, started = pathlib.Path(name) / check.__name__, time.monotonic()
            work.mkdir()
            (work / "long.toml").write_text(workload(base_batch=8 * len(NAMES), planned_samples=1e8, accuracy=0.999))
            with Hosts(work, *NAMES) as hosts:
                check(program, hosts, work)
            print(f"ok     {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)

        for played in [two.submit(play, check) for check in
                       (advised_and_elastic, under_torchrun, without_shared_storage, under_mpirun)]:
            played.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
