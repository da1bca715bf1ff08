"""Steps of an experiment: commands whose output is kept. Those that are there already, with the same words and the same policy,
are not run again; the others run beside each other, as many as there are cores."""
import collections
import contextlib
import ctypes
import dataclasses
import datetime
import functools
import json
import os
import pathlib
import re
import shlex
import signal
import struct
import subprocess
import sys
import time


def write_whole(path, text):
    """Or not at all."""
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class Failed(Exception):
    pass


class Interrupted(Exception):
    pass


@dataclasses.dataclass
class Step:
    name: str
    command: list           # its words; the word "dynamix" stands for the built command
    minutes: float          # about, of one core; of the whole machine when alone
    alone: bool = False     # uses all cores by itself, or measures real time
    after: tuple = ()       # names of the steps whose files it reads
    collect: object = None  # what is kept of it, from its files; None: the JSON it prints
    watch: object = None    # how much of it is done, 0 to 1; None: by the time it takes


@dataclasses.dataclass
class Place:
    folder: pathlib.Path  # of the experiment's runs
    root: pathlib.Path
    quick: bool
    cores: int

    def path(self, *parts):
        """As a command should name it: it runs in the project's folder."""
        path = self.folder.joinpath(*parts)
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    @property
    def shown(self):
        return self.path()

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(data, indent=1) + "\n")

    def read(self, name):
        path = self.folder / name
        try:
            found = json.loads(path.read_text())
        except (FileNotFoundError, ValueError, RecursionError):  # the latter two damaged, also as text
            return None
        return found if isinstance(found, dict) else None


def minutes(all_steps, cores):
    return sum(step.minutes if step.alone else step.minutes / cores for step in all_steps)


@functools.cache
def policy_checksum(root, path="policies/default.safetensors"):
    """Of a policy: the header of its file holds it (safetensors: a length, then JSON)."""
    data = (root / path).read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return header["__metadata__"]["sha256"]


def learn(name, flags, place, minutes):
    """A step that learns NAME.safetensors in the experiment's folder; its validation score and its checksum are kept."""
    file, folder = place.path(f"{name}.safetensors"), place.path(f"learn-{name}")
    short = ["--updates", 1, "--jobs", 8, "--tasks", 16, "--steps", 16, "--validation-tasks", 4, "--miniatures",
             0] if place.quick else []

    def collect():
        best = json.loads((place.root / folder / "best.json").read_text())
        return {"validation": round(best["validation"], 4), "checksum": policy_checksum(place.root, file)}

    return Step(f"learn-{name}", ["dynamix", "learn", *flags, *short, "--threads", 1, "--out", file, "--run", folder, "--json"],
                minutes,
                collect=collect)


def learned(outputs):
    """What the steps of learn() kept, by policy."""
    return {name.removeprefix("learn-"): output for name, output in outputs.items() if name.startswith("learn-")}


@functools.cache  # what runs is what was there when it began
def code_version(root):
    """Raised by every change of code after which the same job gives other figures."""
    return int(re.search(r"kRunVersion = (\d+)", (root / "dynamix/evaluation/judge.h").read_text())[1])


def identity(step, told, place):
    """What must be the same for a kept output to count."""
    words = [part for word in step.command for part in re.split(r"[,:]", str(word))]
    uses_policy = "default" in words or words[0] == "scripts/bench"
    return {"command": shlex.join(map(str, step.command)), "policy": policy_checksum(place.root) if uses_policy else None,
            "version": code_version(place.root), "after": {name: told[name]["date"] for name in step.after}}


def is_here(step, place):
    """Of a step that reads no other's files."""
    return not step.after and kept(step, {}, place) is not None


def kept(step, told, place):
    found = place.read(f"steps/{step.name}.json")
    wanted = identity(step, told, place)
    whole = (found and isinstance(found.get("date"), str) and isinstance(found.get("seconds"), (int, float)) and
             isinstance(found.get("output"), (dict, list)))
    return found if whole and all(found.get(key) == value for key, value in wanted.items()) else None


def begin(parent):
    """In the new process: ctrl-C ends it, and so does the end of the script, however that came about."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


class Running:
    def __init__(self, step, told, place, dynamix):
        self.step, self.place, self.identity = step, place, identity(step, told, place)
        folder = place.folder / "steps"
        folder.mkdir(parents=True, exist_ok=True)
        self.out, self.log = folder / f"{step.name}.out", folder / f"{step.name}.log"
        self.started = time.monotonic()
        words = [str(dynamix) if word == "dynamix" else str(word) for word in step.command]
        with self.out.open("w") as out, self.log.open("w") as log:
            # A session of its own: ctrl-C reaches it once, from here, also when a shell made this one deaf to it.
            try:
                self.process = subprocess.Popen(words, cwd=place.root, stdout=out, stderr=log, stdin=subprocess.DEVNULL,
                                                start_new_session=True,
                                                preexec_fn=functools.partial(begin, os.getpid()))
            except FileNotFoundError:
                raise Failed(f"{words[0]} is not there: build it with scripts/build release") from None

    def share(self):
        if self.step.watch:
            return min(0.99, self.step.watch())
        return min(0.9, (time.monotonic() - self.started) / 60 / self.step.minutes)

    def finish(self):
        """What is kept of it."""
        if self.process.returncode != 0:
            tail = "\n".join(self.log.read_text(errors="replace").strip().splitlines()[-5:])
            raise Failed(f"{self.step.name} ended with exit code {self.process.returncode}: "
                         f"{self.identity['command']}\n{tail}\n(all of it: {self.place.path('steps', self.log.name)}); the "
                         "same command tries it again")
        output = self.step.collect() if self.step.collect else last_json(self.out.read_text())
        told = {**self.identity, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "seconds": round(time.monotonic() - self.started, 1), "output": output}
        self.place.write(f"steps/{self.step.name}.json", told)
        self.out.unlink()
        return told

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):  # ctrl-C again: at once
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(ProcessLookupError):  # what a shell script has left
            os.killpg(self.process.pid, signal.SIGKILL)


def last_json(text):
    """One object, or the last line's of one per line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = text.strip().splitlines()
        if not lines:
            raise Failed("a command that should print JSON printed nothing") from None
        try:
            return json.loads(lines[-1])
        except json.JSONDecodeError:
            raise Failed("a command that should print JSON printed something else, or only a part of it") from None


def run_all(experiment, all_steps, place, dynamix, only=""):
    """What every step told, by name: of those whose name begins with `only`, and of others that are there."""
    told = {}
    for step in all_steps if only else []:
        found = None if step.name.startswith(only) else kept(step, told, place)
        if found:
            told[step.name] = found
    waiting, running = collections.deque(step for step in all_steps if step.name.startswith(only)), []
    progress = Progress(experiment, list(waiting), place.cores)
    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
                if signal.getsignal(number) != signal.SIG_IGN}  # nohup
    try:
        while waiting or running:
            for step in list(waiting):
                if any(name not in told for name in step.after):
                    continue
                found = kept(step, told, place)
                if found:
                    told[step.name] = found
                    progress.known(step)
                elif fits(step, running, place.cores):
                    running.append(Running(step, told, place, dynamix))
                else:
                    break  # in order: who needs the machine alone is not overtaken for ever
                waiting.remove(step)
            time.sleep(0.1)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                told[one.step.name] = one.finish()
                progress.finished(one.step, told[one.step.name]["seconds"])
            progress.show(waiting, running)
    except KeyboardInterrupt:
        raise Interrupted() from None
    finally:
        for one in running:
            one.stop()
        for number, handler in previous.items():
            signal.signal(number, handler)
        progress.end()
    return {step.name: told[step.name] for step in all_steps if step.name in told}


def interrupt(*_):
    """As ctrl-C, which a shell lets its background jobs ignore."""
    raise KeyboardInterrupt


def fits(step, running, cores):
    if step.alone or any(one.step.alone for one in running):
        return not running
    return len(running) < cores


class Progress:
    """A line per finished step, and on a terminal one line that is written anew."""

    def __init__(self, experiment, all_steps, cores):
        self.experiment, self.cores, self.total = experiment, cores, len(all_steps)
        self.done, self.took, self.expected, self.shown = 0, 0.0, 0.0, 0.0

    def known(self, step):
        self.done += 1
        self.say(f"{step.name} is there")

    def finished(self, step, seconds):
        self.done += 1
        self.took += seconds / 60
        self.expected += step.minutes
        self.say(f"{step.name} took {seconds:.0f} s")

    def say(self, text):
        clear = "\r\033[K" if sys.stderr.isatty() else ""
        print(f"{clear}{self.experiment} [{self.done}/{self.total}] {text}", file=sys.stderr, flush=True)

    def left_minutes(self, waiting, running):
        pace = self.took / self.expected if self.expected else 1
        rest = minutes(waiting, self.cores) + sum(
            one.step.minutes * (1 - one.share()) / (1 if one.step.alone else min(self.cores, len(running))) for one in running)
        return pace * rest

    def show(self, waiting, running):
        often = 1 if sys.stderr.isatty() else 120
        if not running or time.monotonic() - self.shown < often:
            return
        self.shown = time.monotonic()
        names = ", ".join(f"{one.step.name} {100 * one.share():.0f} %" for one in running)
        left = self.left_minutes(waiting, running)
        line = f"{self.experiment} [{self.done}/{self.total}] {names}; about {left:.0f} minutes left"
        on_terminal = sys.stderr.isatty()
        print(f"\r\033[K{line}" if on_terminal else line, end="" if on_terminal else "\n", file=sys.stderr, flush=True)

    def end(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def describe(told):
    """When, with what, how long."""
    dates = sorted(one["date"] for one in told.values())
    policies = {one["policy"] for one in told.values() if one["policy"]}
    if len(policies) > 1:
        raise Failed("the steps were made with different policies: run it with --fresh")
    return {"begun": dates[0][:10], "date": dates[-1][:10], "policy": policies.pop() if policies else None,
            "version": max(one["version"] for one in told.values()), **costs({name: round(one["seconds"] / 60, 2)
                                                                              for name, one in told.items()}),
            "commands": list(dict.fromkeys(one["command"] for one in told.values()))}


def costs(took):
    """Minutes of commands: all, and by step."""
    return {"minutes": round(sum(took.values()), 2), "took": took}
