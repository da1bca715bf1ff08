"""Windows of all ranks become rounds, and rounds become the batch this rank wants next."""
import math

import numpy
import torch

from dynamix import _core


_READY, _NOISE, _BATCHES = 0, 1, 2  # places in a word


class Rounds:
    """Bounds are of a batch; rounds speak of iterations, which are `period` batches long.

    What follows from a round is agreed on by a word that travels with the iterations after it, and
    nobody waits for it: how many ranks are ready to switch, the noise scale, and each rank's next
    batch. What all ranks compute with must be the same to the last bit, so each of these numbers is
    said by one rank, and the others say 0. With the policy in process rank 0 says all of it."""

    def __init__(self, exchange, advice, bounds, monitor, limit_by_memory):
        self._exchange, self._advice, self._bounds = exchange, advice, bounds
        self._monitor = monitor
        self._limit_by_memory = limit_by_memory and exchange.device.type == "cuda"
        self._noise_scale = _core.NoiseScale()
        self.noise = math.nan  # rank 0's value, the same on all ranks
        self.windows = 0
        self.asking = False    # an answer is to come
        self._period = 1       # that it is for
        self._decided = ()     # rank 0: the policy's answer, as batches of all ranks

    def close(self, table, batch, start_batch, period, settings, progress):
        """The round of the window that ended. Every rank calls it."""
        if self._limit_by_memory:
            self._lower_bound(batch)
        entry = _core.RoundEntry(self._iteration_bounds(period), start_batch * period,
                                 batch * period, self.windows)
        if self._monitor is not None:
            self._monitor.measure(entry)
        gathered = self._exchange.gather(numpy.concatenate([_core.pack_entry(entry), table.ravel()]))
        entries = _core.join_windows(gathered, len(table), self._noise_scale, progress)
        if self._advice.in_process and self._exchange.rank == 0:
            advised = self._advice.decide(self.windows, settings, entries)
            self._decided = tuple(_core.clamp_batch(batch, entry.batch, entry.bounds) // period
                                  for batch, entry in zip(advised, entries))
        self.asking = (self._advice.in_process or
                       self._advice.submit(self.windows, settings, entries[self._exchange.rank]))
        self._period = period
        self.windows += 1

    def say(self, coming, period):
        """This rank's part of the word; `coming` are the batches that are agreed on."""
        rank, size = self._exchange.rank, self._exchange.size
        word = [0.0] * (_BATCHES + size)
        if not self.asking:
            return word
        if rank == 0:
            word[_NOISE] = self._noise_scale.value
        if not self._advice.in_process:
            word[_READY], advised = self._advice.poll()
            legal = coming[rank]
            if advised is not None and period == self._period:
                legal = _core.clamp_batch(advised, legal * period, self._iteration_bounds(period)) // period
            word[_BATCHES + rank] = legal
        elif rank == 0:
            word[_READY] = size
            word[_BATCHES:] = self._decided if self._decided and period == self._period else coming
        return word

    def hear(self, word):
        """The word of all ranks. Returns every rank's next batch, or None while some are not ready."""
        self.noise = word[_NOISE]
        batches = self.agreed(word)
        self.asking = batches is None
        return batches

    def agreed(self, word):
        """The same, and nothing changes."""
        if word[_READY] < self._exchange.size:
            return None
        return tuple(int(batch) for batch in word[_BATCHES:])

    def state(self, word):
        """`word`: of all ranks and not yet heard, or None."""
        asking = self.asking and (word is None or self.agreed(word) is None)
        return {"noise_scale": self._noise_scale.state(),
                "noise": self.noise if word is None else word[_NOISE], "windows": self.windows,
                "asking": int(asking), "decided": list(self._decided) if asking else [],
                "memory": self._advice.memory()}

    def restore(self, state, same_ranks):
        """With another number of ranks the policy starts to observe anew."""
        self._noise_scale.restore(state["noise_scale"])
        self.noise, self.windows = state["noise"], state["windows"]
        self._period, self.asking = state["period"], False
        if same_ranks:
            self._advice.restore(state["memory"])
            self._decided = state["decided"]  # rank 0's knows
            self.asking = self._advice.in_process and state["asking"] > 0
        if state["asking"] and not self.asking:
            self.noise = self._noise_scale.value

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
