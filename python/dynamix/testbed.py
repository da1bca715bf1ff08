"""Ranks as slow as the nodes of an emulated cluster (`dynamix launch --cluster`), for trying things
out on one machine."""
from __future__ import annotations

import contextlib
import os
import time

from dynamix import _core


class Pace:
    """Slows this rank down to its node. `emulate` makes one."""

    def __init__(self, model, environment):
        place = _core.read_rank_place(environment)
        self._pace = _core.Pace(environment["DYNAMIX_CLUSTER"], environment["DYNAMIX_WORKLOAD"],
                                place.size, place.rank, int(environment.get("DYNAMIX_SEED", 1)))
        path = environment.get("DYNAMIX_JOB_CLOCK")
        self._clock = _core.JobClock(path) if path and place.rank == 0 else None
        self._zero = None     # of the job's clock: the first pass
        self._paused = 0.0
        self._begin = self._batch = None
        model.register_forward_pre_hook(self._start)
        # Its gradient is the last to be complete, so DDP cannot send it before the sleep is over.
        next(p for p in model.parameters() if p.requires_grad).register_hook(self._sleep)

    @property
    def seconds(self):
        """On the job's clock."""
        return 0.0 if self._zero is None else time.monotonic() - self._zero - self._paused

    @contextlib.contextmanager
    def paused(self):
        """Stops the job's clock, for evaluation."""
        begin = time.monotonic()
        yield
        self._paused += time.monotonic() - begin

    def _start(self, model, inputs):
        if not model.training:
            return
        self._begin, self._batch = time.monotonic(), len(inputs[0])
        if self._zero is None:
            self._zero = self._begin
        if self._clock is not None:
            self._clock.set(self.seconds)

    def _sleep(self, gradient):
        if self._begin is None:
            return
        end = self._begin + 1e-3 * self._pace.next_ms(self._batch, self.seconds)
        self._begin = None
        time.sleep(max(0.0, end - time.monotonic()))


class _Real:
    """Outside of an emulated cluster: the clock on the wall."""

    def __init__(self):
        self._zero = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self._zero

    @contextlib.contextmanager
    def paused(self):
        begin = time.monotonic()
        yield
        self._zero += time.monotonic() - begin


def emulate(model):
    """Makes this rank as slow as its node when `dynamix launch --cluster` started it, and does nothing
    otherwise. Returns the job's clock: `seconds`, and `paused()` for evaluation."""
    if "DYNAMIX_CLUSTER" not in os.environ or os.environ.get("DYNAMIX_TESTBED") == "quota":
        return _Real()
    return Pace(model, dict(os.environ))
