from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from dynamix import _check, _core
from dynamix._policy import make_bounds, make_settings


class Worker:
    """One rank of a job that an arbitrator advises, for any training loop and framework.

        worker = dynamix.Worker("127.0.0.1:7040", rank=rank, size=size, batch_size=64)
        while training:
            loss = train(worker.batch_size)          # one iteration of that many samples
            worker.end_iteration(iteration_ms=..., compute_ms=..., loss=loss)

    Nothing here waits for the network: without an arbitrator the batch stays. Ranks may switch in
    different iterations, so weight each rank's gradient by the samples it really used. Network and
    host are measured from inside (`monitor`).
    """

    def __init__(self, advisor: str | Mapping[str, Any], *, rank: int = 0, size: int = 1,
                 batch_size: int = 32, min_batch: int = 8, max_batch: int = 1024,
                 granularity: int = 1, window: int = 10, job: str = "job", rule: str = "none",
                 schedule: str = "constant", clock: str = "samples", adaptive: bool = False,
                 base_learning_rate: float | None = None, base_batch: float | None = None,
                 target: float | Mapping[str, float] | None = None, monitor: str = "ebpf", device: int = -1) -> None:
        self._worker = _core.Worker(
            _check.advisor_options(advisor, job=job, rank=rank, size=size),
            make_settings(rule, schedule, clock, adaptive, base_learning_rate, base_batch, target),
            make_bounds(min_batch, max_batch, granularity),
            _check.whole("batch_size", batch_size, min_batch, max_batch),
            _check.whole("window", window, 1, 1000000), _check.text("monitor", monitor),
            _check.whole("device", device, -1, 4095))
        self._close = weakref.finalize(self, self._worker.close)

    @property
    def batch_size(self) -> int:
        """Samples of the next iteration."""
        return self._worker.batch

    def end_iteration(self, **measured: float) -> int:
        """Tells of an iteration: iteration_ms, compute_ms, wait_ms, communication_ms, loss,
        accuracy, gradient_norm, noise_scale, learning_rate, progress; what is not given was not
        measured. Returns the next batch size."""
        return self._worker.end_iteration(**measured)

    def counts(self) -> dict[str, Any]:
        """Windows submitted, advised, and calls that failed, as a dictionary."""
        return self._worker.counts()

    def close(self) -> None:
        """Leaves the arbitrator, within 0.2 s."""
        self._close()
