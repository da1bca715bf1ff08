#!/usr/bin/env python3
"""The ranks of a live job, as real processes: a closed terminal saves like SIGTERM, a stopped rank is named within two
timeouts, and nobody reaches the ranks' ports who is not of the job.

usage: train_ranks_test.py DYNAMIX FASHION_MNIST_FOLDER
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from small_job import PACED, first_in_time  # noqa: E402
from train_command_test import RANKS, WORKLOAD, command, interrupted, resume, weights  # noqa: E402

TIMEOUT_S = 10


def hang_up(program, work):
    """The terminal is closed: saved as after SIGTERM."""
    subprocess.run(command(program, work / "alone", work), stdout=subprocess.DEVNULL, check=True, timeout=200)

    def close_terminal(process, pids):
        """The system sends it to all of them, and the launcher passes on its own."""
        for pid in [process.pid, *pids]:
            os.kill(pid, signal.SIGHUP)

    code, errors = interrupted(program, work / "hung", work, 5, close_terminal)
    assert code == 128 + signal.SIGHUP and "--resume" in errors, (code, errors)
    resume(program, work / "hung", work)
    assert weights(work / "hung") == weights(work / "alone"), "SIGHUP and resume: other weights"


def stopped_rank(program, work):
    """A rank that is stopped is named, and all end within twice the timeout."""
    for rank in range(RANKS):
        def attempt(number):
            stopped = []

            def stop(process, pids):
                os.kill(pids[rank], signal.SIGSTOP)
                stopped.append(time.monotonic())

            code, errors = interrupted(program, work / f"silent{rank}-{number}", work, 5, stop, timeout_s=TIMEOUT_S)
            if not stopped:
                return None  # the machine was too busy for this timeout
            seconds = time.monotonic() - stopped[-1]
            assert code == 1 and f"lost rank {rank} (ended, stopped or too slow)" in errors, (rank, code, errors)
            return seconds if seconds < 2 * TIMEOUT_S else None

        first_in_time(attempt)


def listeners(program, work):
    """No rank of a job on this machine listens where another machine could reach it."""
    seen = []

    def look(process, pids):
        seen.append([address for address, _ in listening(pids)])
        process.send_signal(signal.SIGTERM)

    interrupted(program, work / "listens", work, 5, look, "--testbed", "plain")
    assert seen and all(address == "0100007F" for address in sum(seen, [])), seen


def listening(pids):
    """(address, port), as /proc has them, on which these processes listen."""
    found = []
    for pid in pids:
        sockets = set()
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(link))
            except FileNotFoundError:
                pass
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    address, port = fields[1].split(":")
                    found.append((address, int(port, 16)))
    return found


class Networks:
    """Two machines, as network namespaces, with two cables between them: `job` (10.77.0.1, .2) and `other` (10.78.0.1, .2).
    They live as long as the processes that hold them."""

    def __enter__(self):
        self.holders = [subprocess.Popen(["unshare", "-n", "sh", "-c", "echo up; exec cat"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for holder in self.holders:
            assert holder.stdout.readline() == "up\n"
        near, far = (str(holder.pid) for holder in self.holders)
        for name, net in (("job", "10.77.0"), ("other", "10.78.0")):
            self.on(0, "ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", far)
            for machine in (0, 1):
                self.on(machine, "ip", "addr", "add", f"{net}.{machine + 1}/24", "dev", name)
                self.on(machine, "ip", "link", "set", name, "up")
        self.on(0, "ip", "link", "set", "lo", "up")
        return self

    def inside(self, machine):
        return ["nsenter", "-t", str(self.holders[machine].pid), "-n"]

    def on(self, machine, *words):
        subprocess.run([*self.inside(machine), *words], check=True)

    def reaches(self, address, port):
        """From the second machine, or from the first one when the address is loopback's."""
        words = [sys.executable, "-c", f"import socket; socket.create_connection(('{address}', {port}), timeout=2)"]
        machine = 0 if address == "127.0.0.1" else 1
        return subprocess.run([*self.inside(machine), *words], stderr=subprocess.DEVNULL).returncode == 0

    def __exit__(self, *_):
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()
            holder.stdout.close()


def store_of_a_network(program, work):
    """Ranks that no launcher started meet at rank 0's port: only those who come over the job's interface reach it."""
    if os.geteuid() != 0:
        print("skipped store_of_a_network: needs root, for network namespaces")
        return
    for master, reached in (("127.0.0.1", ["127.0.0.1"]), ("10.77.0.1", ["127.0.0.1", "10.77.0.1"])):
        with Networks() as networks:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            # The second rank never comes: there is time to look at the first.
            place = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": master, "MASTER_PORT": str(port)}
            job = [word for word in command(program, work / "network", work, timeout_s=300) if not word.startswith("--json")]
            rank = subprocess.Popen([*networks.inside(0), *job], env={**os.environ, **place},
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + 60
            try:
                while (0, port) not in [(int(address, 16), each) for address, each in listening([rank.pid])]:
                    assert rank.poll() is None, rank.stderr.read()
                    time.sleep(0.01)
                while networks.reaches("10.78.0.1", port):  # it is guarded a moment after it listens
                    assert rank.poll() is None, rank.stderr.read()
                    assert time.monotonic() < end, (master, "reached over another interface")
                for address in ("127.0.0.1", "10.77.0.1", "10.78.0.1"):
                    assert networks.reaches(address, port) == (address in reached), (master, address)
            finally:
                rank.kill()
                rank.communicate()
                shutil.rmtree(work / "network", ignore_errors=True)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "small.toml").write_text(WORKLOAD)
        (work / "paced.toml").write_text(PACED)
        for check in (listeners, store_of_a_network, stopped_rank, hang_up):
            started = time.monotonic()
            check(program, work)
            print(f"ok     {check.__name__} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
