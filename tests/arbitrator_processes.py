"""Arbitrators and jobs as real processes, and the ways to harm them. For arbitrator_*_test.py and scripts/chaos.

Nothing here needs a process to be fast or slow: a job is held half way until its test has seen what it waits for.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request

SAMPLES, RANKS, WINDOW = 8000, 4, 5
WINDOWS = SAMPLES // (16 * RANKS * WINDOW)  # at the start batches
LIMIT_S = 120  # of every wait: only a fault takes so long


def wait_until(condition, what, limit_s=LIMIT_S):
    """Returns what the condition does once it is true; `what` is asked for when it never is."""
    end = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.005)
    return found


class Place:
    """Where the programs are, and where files may be left; knows its jobs, to end those a failed test leaves."""

    def __init__(self, dynamix, advised_job, source, folder):
        self.dynamix, self.advised_job = str(dynamix), str(advised_job)
        self.source, self.folder = pathlib.Path(source), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.jobs = []

    def end_jobs(self):
        for job in self.jobs:
            job.kill()


class Arbitrator:
    """A real `dynamix arbitrator`; restarts on the port it had. `reader` of its log: "here", "stopped" or "gone"."""

    def __init__(self, place, policy="static", flags=(), prefix=(), host="127.0.0.1", environment=None, port=0,
                 round_deadline=0.2, lease=2, reader="here"):
        self.log_reader = reader
        self.place, self.flags, self.prefix, self.host = place, list(flags), list(prefix), host
        self.environment = {**os.environ, **(environment or {})}
        self.process, self.port, self.log, self.round_deadline, self.lease = None, port, [], round_deadline, lease
        self.start(policy)

    def start(self, policy):
        assert self.process is None or self.process.poll() is not None
        command = [*self.prefix, self.place.dynamix, "arbitrator", "--listen", f"{self.host}:{self.port}", "--policy", policy,
                   "--lease", str(self.lease), "--round-deadline", str(self.round_deadline), "--json", *self.flags]
        # The port it had may be another process's for a moment: the system gives it to outgoing connections too.
        wait_until(lambda: self._started(command), lambda: f"the arbitrator did not start: {self.process.wait()} {self.log[-5:]}")
        self.port = self.hello["port"]

    def _started(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=self.environment, start_new_session=True)
        self.log = []  # of this process
        target = {"here": self._read_log, "stopped": lambda *_: None, "gone": lambda process, _: process.stderr.close()}
        self.reader = threading.Thread(target=target[self.log_reader], args=(self.process, self.log), daemon=True)
        self.reader.start()
        line = self.process.stdout.readline()
        if line:
            self.hello = json.loads(line)
            return True
        self.process.wait()
        self.reader.join()
        assert self.port and any("cannot listen" in text for text in self.log), f"the arbitrator did not start: {self.log[-5:]}"
        return False

    @staticmethod
    def _read_log(process, log):
        for line in process.stderr:
            log.append(line)

    def events(self, name):
        return [line for line in list(self.log) if f'"event":"{name}"' in line]

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def send(self, number):
        self.process.send_signal(number)

    def metrics(self, **how):
        """The page of --metrics."""
        address = f"http{'s' if how else ''}://127.0.0.1:{self.hello['metrics_port']}/metrics"
        with urllib.request.urlopen(address, timeout=LIMIT_S, **how) as page:
            return page.read().decode()

    def count(self, name):
        """A counter of the service on that page."""
        return int(float(re.search(rf"^{name} (\S+)$", self.metrics(), re.M)[1]))

    def until_event(self, name, text=""):
        wait_until(lambda: any(text in line for line in self.events(name)), lambda: (f"no event {name} {text}", self.log))

    def end(self, number=signal.SIGTERM, timeout=LIMIT_S):
        if self.process.poll() is None:
            if number == signal.SIGTERM:
                self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        code = self.process.wait(timeout=timeout)
        self.reader.join()  # the log is whole
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)


class Job:
    """A real advised_job, held half way until finish()."""

    def __init__(self, place, address, name="job", ranks=RANKS, samples=SAMPLES, pace_ms=4, prefix=(), environment=None,
                 hold=WINDOWS // 2, **flags):
        more = [f"{key}={value}" for key, value in ({"hold": hold} | flags).items()]
        command = [*prefix, place.advised_job, address, name, str(ranks), str(samples), str(WINDOW), str(pace_ms), *more]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})}, start_new_session=True)
        place.jobs.append(self)
        self.windows, self.result, self.errors = 0, None, []
        self.seen = {"advised": 0, "failed": 0, "joined": 0, "batches": []}  # what the result holds, so far
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("window"):
                _, window, seen = line.split(" ", 2)
                self.seen, self.windows = json.loads(seen), int(window)
            else:
                self.result = json.loads(line)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def until(self, condition):
        """Waits until it is so, which must be before the end of the job."""
        def check():
            assert self.process.poll() is None or condition(), ("the job ended", self.seen, self.errors[-3:])
            return condition()
        wait_until(check, lambda: ("it never came", self.windows, self.seen, self.errors[-3:]))

    def at_window(self, window):
        self.until(lambda: self.windows >= window)

    def until_more(self, count):
        """Waits until that count of what was seen (advised, failed, joined) has grown."""
        before = self.seen[count]
        self.until(lambda: self.seen[count] > before)

    def until_batches(self, *batches):
        self.until(lambda: self.seen["batches"] == list(batches))

    def finish(self, timeout=LIMIT_S):
        """Lets the job go on to its end, and waits for it."""
        self.process.stdin.close()
        code = self.process.wait(timeout=timeout)
        self.reader.join()
        assert code == 0, f"the job ended with {code}: {self.errors[-3:]}"
        assert 4 <= self.result["lowest"] and self.result["highest"] <= 256, self.result
        return self.result

    def kill(self):
        self.process.kill()
        self.process.wait()


class Relay:
    """A TCP relay that delays, swallows or cuts what passes."""

    def __init__(self, target_port, delay_s=0.0):
        self.target_port, self.delay_s, self.black_hole, self.open = target_port, delay_s, False, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def _accept(self):
        while self.open:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                continue
            self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        try:
            while data := a.recv(65536):
                if self.black_hole:
                    continue
                if self.delay_s:
                    due = time.monotonic() + self.delay_s
                    threading.Timer(max(0, due - time.monotonic()), self._send, (b, data)).start()
                else:
                    b.sendall(data)
        except OSError:
            pass
        finally:
            for s in (a, b):
                try:
                    s.close()
                except OSError:
                    pass

    @staticmethod
    def _send(to, data):
        try:
            to.sendall(data)
        except OSError:
            pass

    def cut(self):
        """Breaks every connection."""
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.sockets.clear()

    def close(self):
        self.open = False
        self.listener.close()
        self.cut()


def baseline(place):
    """What the job ends with when nobody advises: the weights every run with constant batches must have."""
    return Job(place, "127.0.0.1:1", pace_ms=0).finish()
