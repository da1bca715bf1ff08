from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from dynamix import _check, _core

_TIMES = ("iteration_ms", "compute_ms", "wait_ms", "communication_ms")


class Policy:
    """A policy at work on one job: numbers of a window in, batch sizes out.

    `policy` is a rule ("balanced", "goodput", ...; docs/rules.md), a shipped policy ("default"), a
    policy file, or an object with decide(round, states). It remembers the windows it has seen.

    >>> policy = Policy("balanced", min_batch=4)
    >>> policy.decide([64, 64], compute_ms=[10.0, 30.0], iteration_ms=32.0).tolist()
    [96, 32]
    """

    def __init__(self, policy: Any = "default", *, min_batch: int = 8, max_batch: int = 1024,
                 granularity: int = 1, seed: int = 1, rule: str = "none",
                 schedule: str = "constant", clock: str = "samples", adaptive: bool = False,
                 base_learning_rate: float | None = None, base_batch: float | None = None,
                 target: float | Mapping[str, float] | None = None) -> None:
        self._bounds = make_bounds(min_batch, max_batch, granularity)
        self._settings = make_settings(rule, schedule, clock, adaptive, base_learning_rate,
                                       base_batch, target)
        self._arbitrator = make_arbitrator(policy, seed=seed, guard=False)
        self._start = None
        self._windows = 0

    def decide(self, batches: Sequence[int], *, iterations: int = 10,
               **measured: Any) -> numpy.ndarray:
        """Batch sizes for the next window, one per worker.

        `batches` are those of the window that ended. `measured` are fields of a report, one number
        for all workers or one each; nan: not measured. iteration_ms, compute_ms, wait_ms,
        communication_ms; loss, accuracy, gradient_norm, noise_scale, learning_rate, progress; and,
        in dictionaries, network= and host=. docs/metrics.md lists them.
        """
        batches = [_check.whole("batches", batch, 1, (1 << 31) - 1) for batch in batches]
        workers = "one or more" if self._start is None else len(self._start)
        if not batches or workers not in ("one or more", len(batches)):
            raise _check.refused("batches", batches, f"{workers} sizes, one per worker")
        self._start = self._start or batches
        entries = []
        for worker, (batch, start) in enumerate(zip(batches, self._start)):
            entry = _core.RoundEntry(self._bounds, start, batch, self._windows)
            report = entry.report
            report.rank, report.iterations, report.local_batch = worker, iterations, batch
            _fill(report, measured, worker, len(batches))
            entry.report = report
            entries.append(entry)
        decision = self._arbitrator.step(_core.Round(self._windows, self._settings, entries))
        self._windows += 1
        if decision.failure:
            raise RuntimeError(f"the policy failed: {decision.failure}")
        return numpy.array(decision.sizes)


def _fill(report, measured, worker, workers):
    for name, value in measured.items():
        if isinstance(value, dict):
            section = getattr(report, name)
            for inner, each in value.items():
                _set(section, inner, each, worker, workers)
            setattr(report, name, section)
        elif name in _TIMES:
            _set(report, name, value, worker, workers)
        else:
            training = report.training
            _set(training, name, value, worker, workers)
            report.training = training


def _set(section, name, value, worker, workers):
    if not hasattr(section, name):
        raise _core.InputError(f"{name} is not allowed: expected a field of a report "
                               "(docs/metrics.md)")
    try:
        setattr(section, name, float(numpy.broadcast_to(value, (workers,))[worker]))
    except (TypeError, ValueError):
        raise _check.refused(name, value, f"a number, or {workers} of them") from None


def make_arbitrator(policy, *, seed, guard):
    if isinstance(policy, os.PathLike):
        policy = os.fspath(policy)
    return _core.Arbitrator(policy, seed=_check.whole("seed", seed, 0, (1 << 63) - 1), guard=bool(guard))


def make_bounds(min_batch, max_batch, granularity):
    highest = (1 << 31) - 1
    bounds = _core.BatchBounds(_check.whole("min_batch", min_batch, 1, highest),
                               _check.whole("max_batch", max_batch, 1, highest),
                               _check.whole("granularity", granularity, 1, highest))
    bounds.validate("batch_size bounds")
    return bounds


def make_settings(rule, schedule, clock, adaptive, base_learning_rate, base_batch, target):
    def known(field, value):
        return math.nan if value is None else _check.number(field, value)

    return _core.JobSettings(rule=_check.text("rule", rule),
                             schedule=_check.text("schedule", schedule),
                             clock=_check.text("clock", clock), adaptive=bool(adaptive),
                             base_learning_rate=known("base_learning_rate", base_learning_rate),
                             base_batch=known("base_batch", base_batch),
                             **{f"target_{name}": value for name, value in read_target(target).items()})


def read_target(target):
    """What the user waits for: a number is an accuracy; {"accuracy": 0.9} or {"loss": 1.6}."""
    if target is None:
        return {}
    named = dict(target) if isinstance(target, Mapping) else {"accuracy": target}
    for name, value in named.items():
        number = _check.number("target", value)
        if len(named) == 1 and (name == "accuracy" and 0 < number < 1
                                or name == "loss" and 0 < number < math.inf):
            return {name: number}
    raise _check.refused("target", target, 'an accuracy in (0, 1), or {"loss": a number above 0}')
