"""Where a rank's next batch comes from: the arbitrator's loop on rank 0, or an arbitrator far away."""
import logging

import numpy
import torch

from dynamix import _check, _core
from dynamix._policy import make_arbitrator

log = logging.getLogger("dynamix")


class InProcess:
    """The policy on rank 0. What it decides is broadcast with the noise scale."""

    def __init__(self, policy, seed, guard, recorder=None):
        self._recorder = recorder
        self._arbitrator = make_arbitrator(policy, seed=seed, guard=guard)
        self._batch = None
        self._failure = ""
        self._rounds = []  # rank 0: number and packed entries of each, for replay

    def decide(self, index, settings, entries):
        """Rank 0: a batch for each worker."""
        round = _core.Round(index, settings, entries)
        decision = self._arbitrator.step(round)
        if self._recorder is not None:
            self._recorder.add(round, decision)
        if decision.failure and decision.failure != self._failure:
            log.warning("the policy failed, batches stay: %s", decision.failure)
        self._failure = decision.failure
        self._rounds.append(numpy.concatenate([[index], *map(_core.pack_entry, entries)]))
        return decision.sizes

    def submit(self, index, settings, entry, batch):
        self._batch = batch

    def poll(self):
        """(ready, batch of an iteration or None)"""
        return True, self._batch

    def history(self):
        """What the policy has seen; empty but on rank 0."""
        return torch.as_tensor(numpy.array(self._rounds))

    def restore(self, history, settings, rank, size, advised):
        """Shows rank 0's policy the rounds it saw before; the record has them already."""
        recorder, self._recorder = self._recorder, None
        self._batch = None if advised is None else advised[rank]
        for line in history.numpy() if rank == 0 else ():
            entries = [_core.unpack_entry(entry) for entry in line[1:].reshape(size, -1)]
            self.decide(int(line[0]), settings, entries)
        self._recorder = recorder

    def summary(self):
        return {}

    def close(self):
        pass


class Remote:
    """An arbitrator over RPC. Never waits; without it the batch stays. The connection begins with
    the first window, when the job's settings are known."""

    def __init__(self, advisor, job, rank, size):
        self._options = _check.advisor_options(advisor, job=_check.text("job", job or "job"), rank=rank, size=size)
        self._advisor = None
        self._closed = False

    def decide(self, index, settings, entries):
        return None

    def submit(self, index, settings, entry, batch):
        if self._closed:
            return
        if self._advisor is None:
            self._advisor = _core.RemoteAdvisor(self._options, settings)
        self._advisor.submit(index, entry)
        for sentence in self._advisor.take_log():
            log.warning("%s", sentence)

    def poll(self):
        """(ready, batch of an iteration or None)"""
        return (True, None) if self._advisor is None or self._closed else self._advisor.poll()

    def history(self):
        return torch.empty(0)

    def restore(self, history, settings, rank, size, advised):
        pass

    def summary(self):
        return {} if self._advisor is None else self._advisor.counts()

    def close(self):
        self._closed = True
        if self._advisor is not None:
            self._advisor.close()
