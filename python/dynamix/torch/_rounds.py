"""Windows of all ranks become rounds, and rounds become the batch this rank wants next."""
import math

import numpy
import torch

from dynamix import _core


class Rounds:
    """Bounds are of a batch; rounds speak of iterations, which are `period` batches long."""

    def __init__(self, exchange, advice, bounds, monitor, limit_by_memory):
        self._exchange, self._advice, self._bounds = exchange, advice, bounds
        self._monitor = monitor
        self._limit_by_memory = limit_by_memory and exchange.device.type == "cuda"
        self._noise_scale = _core.NoiseScale()
        self.noise = math.nan  # rank 0's value, the same on all ranks
        self.windows = 0
        self.asking = False    # an answer is to come, to each rank at another time
        self._period = 1       # that it is for

    def wanted(self, coming, period):
        """(ready to switch, this rank's next batch); `coming` is the one that is agreed on."""
        ready, advised = self._advice.poll()
        if advised is None or period != self._period:
            return ready, coming
        legal = _core.clamp_batch(advised, coming * period, self._iteration_bounds(period))
        return ready, legal // period

    def close(self, table, batch, start_batch, period, settings, progress):
        """The round of the window that ended. Every rank calls it. Returns every rank's next batch,
        or None when it is not known yet."""
        if self._limit_by_memory:
            self._lower_bound(batch)
        entry = _core.RoundEntry(self._iteration_bounds(period), start_batch * period,
                                 batch * period, self.windows)
        if self._monitor is not None:
            self._monitor.measure(entry)
        gathered = self._exchange.gather(numpy.concatenate([_core.pack_entry(entry), table.ravel()]))
        entries = _core.join_windows(gathered, len(table), self._noise_scale, progress)
        advised = self._decide(entries, settings)
        self.asking = self._advice.submit(self.windows, settings, entries[self._exchange.rank])
        self._period = period
        self.windows += 1
        if advised is None:
            return None
        return tuple(_core.clamp_batch(batch, entry.batch, entry.bounds) // period
                     for batch, entry in zip(advised, entries))

    def _decide(self, entries, settings):
        """Rank 0's word on the noise scale and, when the policy is there, on the batches: what all
        ranks compute with must be the same to the last bit."""
        word = numpy.full(1 + len(entries), math.nan)
        if self._exchange.rank == 0:
            word[0] = self._noise_scale.value
            sizes = self._advice.decide(self.windows, settings, entries)
            if sizes is not None:
                word[1:] = sizes
        self.noise, *sizes = self._exchange.broadcast(word)
        return None if math.isnan(sizes[0]) else [int(batch) for batch in sizes]

    def state(self):
        return {"noise_scale": self._noise_scale.state(), "noise": self.noise,
                "windows": self.windows, "memory": self._advice.memory()}

    def restore(self, state, same_ranks):
        """With another number of ranks the policy starts to observe anew."""
        self._noise_scale.restore(state["noise_scale"])
        self.noise, self.windows = state["noise"], state["windows"]
        if same_ranks:
            self._advice.restore(state["memory"])

    def _iteration_bounds(self, period):
        bounds = self._bounds
        return _core.BatchBounds(bounds.min * period, bounds.max * period,
                                 bounds.granularity * period)

    def _lower_bound(self, batch):
        """Nothing here can repeat a pass that ran out of a device's memory: stay where it fits,
        counting everything as if it grew with the batch."""
        free, _ = torch.cuda.mem_get_info(self._exchange.device)
        used = torch.cuda.max_memory_reserved(self._exchange.device)
        fits = int(0.9 * batch * (free + used) / max(1, used))
        self._bounds.max = max(self._bounds.min, batch, min(self._bounds.max, fits))
