from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Mapping

from dynamix import _check, _core
from dynamix._policy import make_settings, read_target

log = logging.getLogger("dynamix")


class WallClock:
    """Seconds since it was made."""

    def __init__(self):
        self._zero = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self._zero


class Recorder:
    """A run's folder, as `dynamix train` leaves it: for `dynamix report`, `dynamix.read_run` and
    comparisons. Give it to `adapt(run=...)` on every rank; rank 0 writes.

    `name` is the job's, `target` what ends it on held-out data (an accuracy, or {"loss": ...}),
    `clock` anything with `seconds` (default: the wall's).
    """

    def __init__(self, folder: str | os.PathLike, *, name: str = "python",
                 target: float | Mapping[str, float] | None = None, clock=None) -> None:
        self._path, self._name, self._target = str(folder), name, target
        self._wanted = read_target(target)
        self._clock = clock or WallClock()
        self._folder = None
        self._accuracy = self._loss = math.nan
        self._reached_s = None
        self._first = self._last = None
        self._windows, self._window_begin = 0, 0.0
        self._waited = self._worked = 0.0
        self._overhead = None

    @property
    def seconds(self) -> float:
        """On the job's clock."""
        return self._clock.seconds

    def begin(self, *, policy: str, workers: int, seed: int = 1, window: int = 10, settings=None,
              planned_samples: float = 0) -> None:
        """The process that writes calls it, once."""
        try:
            self._folder = self._make_folder(policy, workers, seed, window, settings, planned_samples)
        except RuntimeError as error:
            raise _check.refused("run", self._path, f"a folder that can be written ({error})") from error
        self._window_begin = self.seconds

    def _make_folder(self, policy, workers, seed, window, settings, planned_samples):
        return _core.RunFolder(
            self._path, policy=policy, workers=workers, seed=seed, window=window, name=self._name,
            settings=settings or make_settings("none", "constant", "samples", False, None, None, self._target),
            # Its own: a job may be recorded to a target that its policy is not told.
            target_accuracy=self._wanted.get("accuracy", 0), target_loss=self._wanted.get("loss", 0),
            planned_samples=planned_samples, cluster=os.environ.get("DYNAMIX_CLUSTER", ""),
            workload=os.environ.get("DYNAMIX_WORKLOAD", ""))

    def add(self, round, decision) -> None:
        """A round that was decided."""
        if self._folder is None:
            return
        self._remember(round.batches.tolist())
        iterations = round.numbers("iterations")
        self._waited += float((round.numbers("wait_ms") * iterations).sum())
        self._worked += float((round.numbers("iteration_ms") * iterations).sum())
        self._folder.add(round, decision, self.seconds, self._accuracy, self._loss)

    def add_batches(self, batches) -> None:
        """The time since the last call, of a job whose batches nobody decides."""
        if self._folder is None:
            return
        now, index = self.seconds, self._windows
        self._remember(list(batches))
        self._folder.add_batches(index, list(batches), max(1e-6, now - self._window_begin), now,
                                 self._accuracy, self._loss)
        self._window_begin = now

    def evaluated(self, *, accuracy: float = math.nan, loss: float = math.nan) -> bool:
        """On held-out data, just now. True when the target is reached."""
        accuracy, loss = _check.number("accuracy", accuracy), _check.number("loss", loss)
        self._accuracy, self._loss = accuracy, loss
        good = (accuracy >= self._wanted.get("accuracy", math.inf)
                or loss <= self._wanted.get("loss", -math.inf))
        if good and self._reached_s is None:
            self._reached_s = self.seconds
        return self._reached_s is not None

    def finish(self, *, samples: int, iterations: int) -> None:
        """Writes the summary."""
        if self._folder is None:
            return
        seconds = self.seconds
        more = {"samples": samples, "iteration_ms": 1e3 * seconds / max(1, iterations),
                "first_batches": self._first or [], "last_batches": self._last or [],
                "has_target": bool(self._wanted), "target_accuracy": self._wanted.get("accuracy"),
                "target_loss": self._wanted.get("loss"), "overhead_share": None}
        lost = self._folder.finish(
            reached=self._reached_s is not None,
            time_to_target_s=seconds if self._reached_s is None else self._reached_s,
            accuracy=self._accuracy, loss=self._loss, windows=self._windows,
            mean_wait_share=self._waited / self._worked if self._worked else 0.0,
            global_batch=sum(self._last or []), seconds=seconds, more=json.dumps(more))
        if lost:
            log.warning("%s", lost)

    def _remember(self, batches):
        self._first, self._last = self._first or batches, batches
        self._windows += 1
