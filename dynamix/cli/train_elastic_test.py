#!/usr/bin/env python3
"""dynamix train --elastic with real processes: ranks that are killed, the first one too, leave a smaller team, come back and
take their share; the record is whole. So does a rank whose network was cut, where namespaces can be made. Fewer than
--min-workers end; their checkpoint is resumed by any number of ranks. Ranks started by hand, as on several machines, come
back through the run's folder, and new ones join it there.

usage: train_elastic_test.py DYNAMIX FASHION_MNIST_FOLDER
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import PACED, workload  # noqa: E402

RANKS = 3
PATIENCE_S = 200


class Job:
    def __init__(self, program, work, name, *more):
        self.folder, self.log = work / name, work / f"{name}.log"
        words = [program, "train", "--backend", "live", "--workers", str(RANKS), "--workload", str(work / "long.toml"),
                 "--cluster", str(work / "paced.toml"), "--window", "5", "--checkpoint-every", "2",
                 "--evaluate-every", "10", "--policy", "balanced", "--monitor", "none", "--data", sys.argv[2],
                 "--run", str(self.folder), "--elastic", *more]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        self.pids = set()

    def said(self):
        return self.log.read_text()

    def rounds(self):
        path = self.folder / "rounds.jsonl"
        # The last line may be under way.
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def wait(self, what):
        start = time.monotonic()
        while not what():
            assert self.process.poll() is None, f"the job ended: {self.said()}"
            assert time.monotonic() - start < PATIENCE_S, f"nothing happens: {self.said()}"
            time.sleep(0.02)

    def wait_for_rounds(self, more):
        until = len(self.rounds()) + more
        self.wait(lambda: len(self.rounds()) >= until)

    def wait_for_team(self, *slots):
        """Until a round was of these workers."""
        def there():
            rounds = self.rounds()
            return rounds and [slot for slot, batch in enumerate(rounds[-1]["batches"]) if batch > 0] == list(slots)
        self.wait(there)

    def rank(self, number):
        """The process that is this rank now."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                child = int(stat.read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid
                if child and f"RANK={number}".encode() in (stat.parent / "environ").read_bytes().split(b"\0"):
                    return int(stat.parent.name)
            except (FileNotFoundError, ProcessLookupError):
                pass
        raise AssertionError(f"rank {number} does not run: {self.said()}")

    def kill(self, number):
        pid = self.rank(number)
        self.pids.update(self.rank(each) for each in range(RANKS))
        os.kill(pid, signal.SIGKILL)

    def end(self, code):
        self.process.wait(timeout=PATIENCE_S)
        assert self.process.returncode == code, (self.process.returncode, self.said())
        for pid in self.pids:
            assert not pathlib.Path(f"/proc/{pid}/cmdline").exists(), f"process {pid} is left"

    def close(self):
        """Asks first: who is killed leaves its namespaces."""
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def killed_and_back(job, program, work):
    job.wait_for_rounds(5)
    for lost in (1, 0):  # a rank, and the first one, which decides and keeps the record
        left = [slot for slot in range(RANKS) if slot != lost]
        job.kill(lost)
        job.wait_for_team(*left)
        assert sum(job.rounds()[-1]["batches"]) == 8 * RANKS, "the global batch stays"
        job.wait_for_team(*range(RANKS))
        job.wait_for_rounds(2)
        assert f"rank {lost} ended with signal 9; the others go on, and it is started again in" in job.said(), job.said()
    job.process.send_signal(signal.SIGTERM)
    job.end(128 + signal.SIGTERM)
    assert "the team is now 2 of 3 workers: 0, 2" in job.said(), job.said()
    assert "the team is now 3 of 3 workers: 0, 1, 2" in job.said() and "--resume goes on" in job.said(), job.said()
    # A first rank that dies between deciding and writing takes one line with it.
    indices = [line["round"] for line in job.rounds()]
    assert indices == sorted(set(indices)) and len(indices) >= indices[-1], indices


def cut_and_healed(job, program, work):
    """The first rank is cut off: the others go on, it does not, and it is taken in again once the network is whole."""
    job.wait_for_rounds(5)
    if "nodes in network namespaces" not in job.said():
        print("cut_and_healed is skipped: network namespaces need root and a kernel that allows them")
        return
    network = ["nsenter", "-t", str(job.rank(0)), "-n", "ip", "link", "set", "wire"]
    subprocess.run([*network, "down"], check=True)
    job.wait_for_team(1, 2)
    subprocess.run([*network, "up"], check=True)
    job.wait_for_team(*range(RANKS))
    job.wait_for_rounds(2)
    job.process.send_signal(signal.SIGTERM)
    job.end(128 + signal.SIGTERM)


def by_hand(program, work):
    """Ranks that somebody started on several machines: they share a folder, but no launcher and no store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder, ranks = work / "by_hand", {}

    def start(rank, restarts=0, size=2):
        place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "DYNAMIX_RESTARTS": restarts, "OMP_NUM_THREADS": 1}
        words = [program, "train", "--backend", "live", "--workers", str(size), "--workload", str(work / "long.toml"),
                 "--cluster", str(work / "paced.toml"), "--testbed", "plain", "--window", "5", "--policy", "balanced",
                 "--monitor", "none", "--data", sys.argv[2], "--run", str(folder), "--elastic"]
        with open(work / f"by_hand{rank}.log", "a") as log:
            ranks[rank] = subprocess.Popen(words, stdout=log, stderr=log,
                                           env={**os.environ, **{name: str(value) for name, value in place.items()}})

    def team():
        path = folder / "rounds.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [slot for slot, batch in enumerate(json.loads(lines[-1])["batches"]) if batch > 0] if lines else None

    def wait_for_team(*slots):
        begin = time.monotonic()
        while team() != list(slots):
            assert time.monotonic() - begin < PATIENCE_S, [(work / f"by_hand{rank}.log").read_text() for rank in (0, 1)]
            time.sleep(0.02)

    try:
        start(0)
        start(1, restarts=1)  # one that ended before all had met, and is awaited
        wait_for_team(0, 1)
        start(7, restarts=1, size=8)
        assert ranks[7].wait(timeout=PATIENCE_S) == 2, "a rank of another job is refused"
        assert "the job started with 2 ranks, and this one says 8" in (work / "by_hand7.log").read_text()
        del ranks[7]
        (folder / "members/doors.json").write_text("{}")  # of no use to anybody, and no harm
        for lost in (1, 0):
            ranks[lost].kill()
            ranks[lost].wait()
            wait_for_team(1 - lost)
            start(lost, restarts=1)
            wait_for_team(0, 1)
        assert (folder / "members").stat().st_mode & 0o77 == 0, "the job's key is for its owner only"
        for process in ranks.values():
            process.terminate()
        for process in ranks.values():
            assert process.wait(timeout=PATIENCE_S) == 130, "interrupted, and saved"
    finally:
        for process in ranks.values():
            process.kill()
            process.wait()


def grown(program, work):
    """A worker that was not there at the start, found by nothing but the run's folder."""
    folder = work / "grown"
    words = [program, "train", "--backend", "live", "--workers", "2", "--workload", str(work / "long.toml"), "--window", "5",
             "--policy", "static", "--monitor", "none", "--data", sys.argv[2], "--run", str(folder), "--elastic",
             "--max-workers", "3"]
    with open(work / "grown.log", "w") as log:
        job = subprocess.Popen(words, stdout=log, stderr=log)
        joined = None

        def wait_for_team(*slots):
            begin = time.monotonic()
            path = folder / "rounds.jsonl"
            while True:
                lines = path.read_text().split("\n")[:-1] if path.exists() else []
                if lines and [slot for slot, batch in enumerate(json.loads(lines[-1])["batches"]) if batch > 0] == list(slots):
                    return
                assert time.monotonic() - begin < PATIENCE_S and job.poll() is None, (work / "grown.log").read_text()
                time.sleep(0.02)

        def refused_join(*more, run=folder):
            command = [str(run) if word == str(folder) else word for word in words]
            done = subprocess.run([*command, "--join", *more], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
            assert done.returncode != 0, done
            return done.stderr

        try:
            wait_for_team(0, 1)
            assert "--evaluate-every = 7.0 (the job has 5.0)" in refused_join("--evaluate-every", "7")
            joined = subprocess.Popen([*words, "--join"], stdout=log, stderr=log)
            wait_for_team(0, 1, 2)
            assert "all 3 workers that the job may have are there" in refused_join()
            again = subprocess.run([*words, "--resume"], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
            assert again.returncode == 2 and "holds a run that is under way" in again.stderr, again
            joined.terminate()  # who came by itself goes by itself
            assert joined.wait(timeout=PATIENCE_S) == 130
            wait_for_team(0, 1)
            lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().split("\n")[:-1]]
            assert [line["round"] for line in lines] == list(range(len(lines))), "no round is lost"
            assert lines[-1]["batches"][:2] == lines[0]["batches"][:2], "the job's start is nobody's advice"
            job.terminate()
            assert job.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM
        finally:
            for process in (job, joined):
                if process and process.poll() is None:
                    process.terminate()
                    process.wait(timeout=PATIENCE_S)
        assert "joined as worker 2: 3 of at most 3 are there" in (work / "grown.log").read_text()
        assert "nobody answers" in refused_join(), "the job has ended"
        assert "no elastic job is under way in" in refused_join(run=work / "nowhere")
        assert not (work / "nowhere").exists()


def too_few(job, program, work):
    job.wait_for_rounds(5)
    job.kill(2)
    job.end(128 + signal.SIGKILL)  # of the first that was lost
    assert "found a team of 2: the job wants 3 at least" in job.said(), job.said()
    resumed(program, work, job.folder)


def resumed(program, work, folder):
    """A checkpoint is resumed by any number of ranks; these share its global batch."""
    for ranks in (1, 4):
        done = subprocess.run([program, "train", "--backend", "live", "--workers", str(ranks), "--workload",
                               str(work / "long.toml"), "--cluster", str(work / "paced.toml"), "--testbed", "plain", "--window",
                               "5", "--policy", "balanced", "--data", sys.argv[2], "--run", str(folder), "--resume", "--samples",
                               str(1000 * ranks), "--allow-changed", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done
        summary = json.loads(done.stdout)
        assert summary["workers"] == ranks and sum(summary["first_batches"]) == 8 * RANKS, summary
        # The rule's shares of it are rounded one by one: by half a sample each at most.
        assert abs(summary["last_global_batch"] - 8 * RANKS) <= ranks / 2, summary
        assert (folder / "report.html").stat().st_size > 0


def refused(program, work):
    for more, reason in ((["--max-restarts", "2"], "--max-restarts and --join are for --elastic jobs"),
                         (["--elastic", "--backend", "live", "--workers", "2", "--max-workers", "1"],
                          "--max-workers = 1 is not allowed: expected at least the job's 2"),
                         (["--elastic", "--backend", "live", "--join"], "--join needs the --run folder"),
                         (["--elastic"], "--elastic is for --backend live"),
                         (["--elastic", "--backend", "live", "--workers", "2", "--min-workers", "3"],
                          "--min-workers = 3 is not allowed: expected at most the job's 2")):
        words = [program, "train", "--workload", str(work / "long.toml"), "--no-record", *more]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        assert done.returncode == 2 and reason in done.stderr, done


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "long.toml").write_text(workload(base_batch=8 * RANKS, planned_samples=1e8, accuracy=0.999))
        (work / "paced.toml").write_text(PACED)
        refused(program, work)
        by_hand(program, work)
        print("ok     by_hand", flush=True)
        grown(program, work)
        print("ok     grown", flush=True)
        for check, more in ((killed_and_back, ["--testbed", "plain", "--max-restarts", "2"]),
                            (cut_and_healed, ["--timeout", "8"]),
                            (too_few, ["--testbed", "plain", "--min-workers", "3", "--timeout", "8"])):
            job = Job(program, work, check.__name__, *more)
            started = time.monotonic()
            try:
                check(job, program, work)
            finally:
                job.close()
            print(f"ok     {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
