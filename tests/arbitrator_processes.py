"""Arbitrators and jobs as real processes, and the ways to harm them. For arbitrator_faults_test.py and scripts/chaos."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

SAMPLES, RANKS, WINDOW = 8000, 4, 5
WINDOWS = SAMPLES // (16 * RANKS * WINDOW)  # at the start batches


class Place:
    """Where the programs are, and where files may be left."""

    def __init__(self, dynamix, advised_job, source, folder):
        self.dynamix, self.advised_job = str(dynamix), str(advised_job)
        self.source, self.folder = pathlib.Path(source), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)


class Arbitrator:
    """A real `dynamix arbitrator`; restarts on the port it had."""

    def __init__(self, place, policy="static", flags=(), prefix=(), host="127.0.0.1", environment=None, port=0,
                 round_deadline=0.2):
        self.place, self.flags, self.prefix, self.host = place, list(flags), list(prefix), host
        self.environment = {**os.environ, **(environment or {})}
        self.process, self.port, self.log, self.round_deadline = None, port, [], round_deadline
        self.start(policy)

    def start(self, policy):
        assert self.process is None or self.process.poll() is not None
        command = [*self.prefix, self.place.dynamix, "arbitrator", "--listen", f"{self.host}:{self.port}", "--policy", policy,
                   "--lease", "2", "--round-deadline", str(self.round_deadline), "--json", *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=self.environment, start_new_session=True)
        self.log = []  # of this process
        threading.Thread(target=self._read_log, args=(self.process, self.log), daemon=True).start()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the arbitrator did not start: {self.process.wait()} {self.log[-5:]}")
        self.hello = json.loads(line)
        self.port = self.hello["port"]

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

    def end(self, number=signal.SIGTERM, timeout=20):
        if self.process.poll() is None:
            if number == signal.SIGTERM:
                self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        code = self.process.wait(timeout=timeout)
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)


class Job:
    """A real advised_job."""

    def __init__(self, place, address, name="job", ranks=RANKS, samples=SAMPLES, pace_ms=4, prefix=(), environment=None, **flags):
        more = [f"{key}={value}" for key, value in flags.items()]
        command = [*prefix, place.advised_job, address, name, str(ranks), str(samples), str(WINDOW), str(pace_ms), *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})}, start_new_session=True)
        self.windows, self.result, self.errors = 0, None, []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("window"):
                self.windows = int(line.split()[1])
            else:
                self.result = json.loads(line)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def at_window(self, window):
        """Waits until the job is there; false when it ended before."""
        while self.windows < window:
            if self.process.poll() is not None:
                return False
            time.sleep(0.002)
        return True

    def finish(self, timeout=120):
        """Waits for the end and checks that the planned samples were trained."""
        code = self.process.wait(timeout=timeout)
        self.reader.join(timeout=10)
        assert code == 0, f"the job ended with {code}: {self.errors[-3:]}"
        assert self.result["samples"] >= SAMPLES or self.result["samples"] > 0
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
    job = Job(place, "127.0.0.1:1", pace_ms=0)
    return job.finish()
