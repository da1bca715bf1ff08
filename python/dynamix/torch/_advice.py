"""Where a rank's next batch comes from: the arbitrator's loop on rank 0, or an arbitrator far away."""
import logging
import secrets

import numpy
import torch

from dynamix import _check, _core
from dynamix._policy import make_arbitrator

log = logging.getLogger("dynamix")


class InProcess:
    """The policy on rank 0, which tells the others what it decides."""

    in_process = True

    def __init__(self, policy, seed, guard, recorder=None):
        self._recorder = recorder
        self._arbitrator = make_arbitrator(policy, seed=seed, guard=guard)
        self._failure = ""

    def open(self, settings, entries):
        """Rank 0: a batch for each worker before anything is measured."""
        return self._arbitrator.open(_core.Round(0, settings, entries))

    def decide(self, index, settings, entries):
        """Rank 0: a batch for each worker."""
        round = _core.Round(index, settings, entries)
        decision = self._arbitrator.step(round)
        if self._recorder is not None:
            self._recorder.add(round, decision)
        if decision.failure and decision.failure != self._failure:
            log.warning("the policy failed, batches stay: %s", decision.failure)
        self._failure = decision.failure
        return decision.sizes

    def memory(self):
        """What the policy and its guard remember."""
        return torch.tensor(self._arbitrator.state(), dtype=torch.float64)

    def restore(self, memory):
        if memory.numel() > 0:  # else it was an arbitrator far away that knew
            self._arbitrator.restore(memory.tolist())

    def summary(self):
        return {}

    def close(self):
        pass


class Remote:
    """An arbitrator over RPC. Only open() waits, for a second at most; without an arbitrator the batch
    stays. The connection that lasts begins with the first window, when the job's settings are known."""

    in_process = False

    def __init__(self, advisor, job, exchange):
        # Drawn by rank 0: another training of this name is told apart by it.
        run, = exchange.broadcast(numpy.array([1.0 + secrets.randbits(52)]))
        self._options = _check.advisor_options(advisor, job=_check.text("job", job or "job"), rank=exchange.rank,
                                               size=exchange.size, run=int(run))
        self._advisor = None
        self._closed = False

    def open(self, settings, entry, job_start):
        """This rank's batch before anything is measured; None: its start."""
        advisor = _core.RemoteAdvisor(self._options, settings)
        try:
            return advisor.open(entry, job_start)
        finally:
            advisor.close()

    def submit(self, index, settings, entry):
        """Whether an answer is to come, by poll()."""
        if self._closed:
            return False
        if self._advisor is None:
            self._advisor = _core.RemoteAdvisor(self._options, settings)
        self._advisor.submit(index, entry)
        for sentence in self._advisor.take_log():
            log.warning("%s", sentence)
        return True

    def poll(self):
        """(ready, batch of an iteration or None)"""
        return (True, None) if self._advisor is None or self._closed else self._advisor.poll()

    def memory(self):
        return torch.empty(0, dtype=torch.float64)

    def restore(self, memory):
        pass

    def summary(self):
        return {} if self._advisor is None else self._advisor.counts()

    def close(self):
        self._closed = True
        if self._advisor is not None:
            self._advisor.close()
