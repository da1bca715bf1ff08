"""A training job whose batch sizes follow advice."""
from __future__ import annotations

import logging
import math
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import torch
import torch.distributed as dist

from dynamix import _check, _core
from dynamix._policy import make_bounds, make_settings
from dynamix.torch import _arguments, _state
from dynamix.torch._advice import InProcess, Remote
from dynamix.torch._exchange import Exchange, sum_over_ranks
from dynamix.torch._loader import Loader, count_samples
from dynamix.torch._rate import RateRule, base_rate, is_adaptive
from dynamix.torch._rounds import Rounds
from dynamix.torch._window import Sums, Window

log = logging.getLogger("dynamix")

# Iterations after which a device's tail is read: its copy is on the host by then, and the host
# does not wait for work it has just handed to the device.
_DEVICE_LAG = 2


# Settings by name, all of which decide the learning rate.
_NAMES = {"rule": ("none", "linear", "sqrt", "adascale"),
          "schedule": ("constant", "cosine", "step", "warmup"), "clock": ("samples", "steps")}


class Job:
    """What `adapt` returns. All ranks hold one and call its methods in the same order."""

    def __init__(self, model, optimizer, dataset, batch_size, *, policy, advisor, rule, target,
                 window, seed, job, loader, epochs, base_batch, min_batch, max_batch, granularity,
                 schedule, clock, scaler, guard, monitor, count, run):
        _arguments.require(model, optimizer, scaler, count, policy, advisor, run)
        batch_size = _check.whole("batch_size", batch_size, 1, 1 << 24)
        self._named_base = 0 if base_batch is None else _check.whole("base_batch", base_batch, 1, 1 << 31)
        self._given = batch_size, min_batch, max_batch, granularity
        bounds = self._make_bounds(dist.get_world_size(model.process_group))
        _core.require_in_range("batch_size", batch_size, bounds.min, bounds.max)
        self._model, self._optimizer, self._bounds = model, optimizer, bounds
        self._window_iterations = _check.whole("window", window, 1, 1 << 24)
        self._seed = _check.whole("seed", seed, 0, 1 << 53)
        self._epochs = None if epochs is None else _check.whole("epochs", epochs, 1, 1 << 31)
        self._rule = rule or ("sqrt" if is_adaptive(optimizer) else "adascale")
        self._target, self._schedule, self._clock = target, schedule, clock
        self._scaler = scaler
        self._count = count_samples if count is None else _arguments.counting(count)
        self._base_rate, self._adaptive = base_rate(optimizer), is_adaptive(optimizer)
        self._base_batch, self._period = batch_size, 1  # a period: batches of an iteration
        self._settings()  # refuses what it cannot hold

        self._exchange = Exchange(model)
        rank, size = self._exchange.rank, self._exchange.size
        self._loader = Loader(dataset, self._seed, rank, [batch_size] * size, loader)
        # Else a batch holds what was planned, and every rank knows all ranks' samples.
        self._counts = count is not None or self._loader.may_drop
        self._recorder = _arguments.make_recorder(run, job, target)
        if advisor is None:
            self._advice = InProcess(policy, self._seed, guard, self._recorder)
        else:
            self._advice = Remote(advisor, job, self._exchange)
        self._rounds = Rounds(self._exchange, self._advice, bounds, _arguments.make_monitor(monitor, model),
                              limit_by_memory=max_batch is None)
        self._start_batches = self._meet(batch_size)
        self._base_batch = sum(self._start_batches)
        self._loader.set_batches(self._open())
        self._begin()
        self._exchange.attach(model)
        if self._recorder is not None and rank == 0:
            self._recorder.begin(policy=_arguments.name_of(policy),
                                 workers=size, seed=self._seed, window=self._window_iterations,
                                 settings=self._settings(),
                                 planned_samples=(epochs or 0) * self._loader.samples)
        self._rate = RateRule(optimizer)
        self._told = 0  # the global batch that the log knows
        if rank == 0:
            log.info("policy %s, rule %s, batches of %d to %d samples per rank",
                     "of the arbitrator" if advisor else _arguments.name_of(policy), self._rule, bounds.min, bounds.max)
        model.register_forward_hook(self._see_output)
        self._close = weakref.finalize(self, self._advice.close)

    def _make_bounds(self, size):
        batch_size, low, high, granularity = self._given
        share = self._named_base // size or batch_size
        return make_bounds(max(1, min(batch_size, share) // 8) if low is None else low,
                           min(1 << 24, 8 * max(batch_size, share)) if high is None else high, granularity)

    def _begin(self):
        self._rows = Window(self._exchange.clock)
        self._skipped = 0      # iterations of the window that an earlier process ran
        self._sums = Sums()
        self._handed = 0       # batches since the last exchange
        self._last_handed = 1  # and before it
        self._whole = True     # all of them were of the sizes in force
        self._samples = 0      # own, in the batch handed out last
        self._source = None    # what the loop under way reads
        self._old_tails = deque()  # sent since the window ended, and not yet heard
        self._heard = True     # what followed from the last window, or that it is to come
        self._iterations = 0
        self._ahead = 0.0      # of the samples seen: the schedule, when its clock is steps
        self._factor_of = None  # what the learning rate's factor was computed from
        self._started = time.monotonic()

    def _meet(self, batch_size):
        """Every rank's start batch. Ranks whose arguments differ would wait for each other later."""
        own = {"dataset": self._loader.samples, "window": self._window_iterations,
               "seed": self._seed, "epochs": self._epochs or 0, "base_batch": self._named_base,
               **{field: _NAMES[field].index(getattr(self, "_" + field)) for field in _NAMES}}
        met = self._exchange.gather([batch_size, self._loader.depth, self._counts, *own.values()])
        for column, field in enumerate(own, 3):
            found = sorted(set(met[:, column].astype(int).tolist()))
            if len(found) > 1:
                names = [_NAMES[field][index] for index in found] if field in _NAMES else found
                raise _check.refused(field, names, "the same on all ranks")
        start_batches = tuple(met[:, 0].astype(int).tolist())
        self._loader.set_batches(start_batches)
        self._loader.depth = int(met[:, 1].max())
        self._counts = bool(met[:, 2].any())
        return start_batches

    def _open(self):
        """Every rank's first batch: a policy may know a better one than the start. Only a smaller one:
        nobody knows yet what memory holds, nor of how many batches an iteration is made."""
        if self._advice.in_process:
            bounds = self._bounds
            rows = self._exchange.gather([bounds.min, bounds.max, bounds.granularity])
            sizes = numpy.zeros(self._exchange.size)
            if self._exchange.rank == 0:
                entries = [self._entry(_core.BatchBounds(*map(int, row)), batch)
                           for row, batch in zip(rows, self._start_batches)]
                sizes[:] = self._advice.open(self._settings(), entries)
            opened = self._exchange.broadcast(sizes)
        else:
            start = self._start_batches[self._exchange.rank]
            own = self._advice.open(self._settings(), self._entry(self._bounds, start), sum(self._start_batches))
            opened = self._exchange.gather([start if own is None else own])[:, 0]
        return tuple(min(int(size), start) for size, start in zip(opened, self._start_batches))

    @staticmethod
    def _entry(bounds, batch):
        """A rank before its first iteration."""
        entry = _core.RoundEntry(bounds, batch, batch)
        entry.report = None
        return entry

    # What a training loop calls.

    def batches(self, epoch: int) -> Iterator[Any]:
        """This rank's batches of one epoch, as the collate function makes them. Goes on where the
        job is when it is inside this epoch (after load_state_dict, or a loop that was left)."""
        epoch = _check.whole("epoch", epoch, 0, 1 << 31)
        self._end_iteration()
        source = self._source = self._loader.epoch(epoch, -self._handed % self._period)
        try:
            first = True
            for batch in source:
                if first:
                    self._exchange.restart_clock()
                first = False
                self._hand_out(batch)
                yield batch
                self._end_iteration()
        finally:
            if self._source is source:  # not when another loop took over
                self._loader.rewind()

    def report(self, *, loss: float | torch.Tensor | None = None,
               accuracy: float | torch.Tensor | None = None) -> None:
        """What the policy should know of the batch handed out last: its mean loss and the share of
        samples that were right. Numbers or tensors; a tensor stays on its device."""
        if loss is not None:
            self._sums.add("loss", loss, self._samples)
        if accuracy is not None:
            self._sums.add("accuracy", accuracy, self._samples)

    def paused(self):
        """`with job.paused():` around whatever is not training, inside the loop: evaluation, saving.
        Its time then counts for no iteration. All ranks enter it."""
        return self._exchange.paused()

    def evaluated(self, *, accuracy: float = math.nan, loss: float = math.nan) -> bool:
        """What the model reaches on held-out data, for the record. True when the target is reached."""
        return self._recorder is not None and self._recorder.evaluated(accuracy=accuracy, loss=loss)

    def average_buffers(self) -> None:
        """Batch norm's statistics as the mean over ranks, weighted by their batches. Call it on all
        ranks before evaluating or saving a model made with broadcast_buffers=False."""
        weight = self.batch_size / sum(self.batch_sizes)
        for buffer in self._model.module.buffers():
            if buffer.is_floating_point():
                mean = buffer.double() * weight
                sum_over_ranks(mean, self._exchange.group).wait()
                buffer.copy_(mean)

    # What it is.

    @property
    def batch_size(self) -> int:
        """Samples of this rank in a batch."""
        return self._loader.batches[self._exchange.rank]

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Samples of every rank in a batch."""
        return self._loader.batches

    @property
    def noise_scale(self) -> float:
        """The gradient noise scale in samples; nan before it is known, and on one rank."""
        return self._rounds.noise

    @property
    def learning_rate_factor(self) -> float:
        """What the rule multiplies the optimizer's rates by."""
        return self._rate.factor

    @property
    def samples_seen(self) -> int:
        """By all ranks."""
        return self._loader.cursor

    @property
    def epoch(self) -> int:
        """Where the job is; after load_state_dict, the epoch to go on with."""
        return self._loader.cursor // self._loader.samples

    @property
    def progress(self) -> float:
        """The part of the schedule that is over: samples seen over samples planned, or what `clock`
        counts instead. Wants adapt(epochs=...)."""
        if not self._epochs:
            raise _check.refused("epochs", None, "how many are planned, in adapt(epochs=...): job.progress is the "
                                 "part of them that is over")
        return self._progress()

    def summary(self) -> dict[str, Any]:
        """The job so far, as a dictionary."""
        return {"seconds": time.monotonic() - self._started, "samples": self.samples_seen,
                "iterations": self._iterations, "windows": self._rounds.windows,
                "batch_sizes": list(self.batch_sizes), "start_batch_sizes": list(self._start_batches),
                "noise_scale": self.noise_scale, "learning_rate": self._rate.rate(),
                "learning_rate_factor": self._rate.factor, "rule": self._rule,
                **self._advice.summary()}

    # Saving and going on.

    def state_dict(self) -> dict[str, Any]:
        """Everything the job needs to go on, besides the states of model and optimizer. Save rank
        0's; load it on every rank. Of a window under way only its length is kept: its numbers are
        measured anew."""
        batches, in_window = self._loader.next_batches, len(self._rows) + self._skipped
        ended = int(self._exchange.finished)  # inside the loop, after the step: not yet counted
        word = None  # that this iteration brought, and is not yet heard
        if ended and self._rounds.asking and self._exchange.tail is not None:
            word = self._exchange.tail.word()
        if ended and not self._loader.switching:
            if word is not None:
                batches = self._rounds.agreed(word) or batches
            in_window = in_window + 1 if batches == self._loader.next_batches else 0
        return {"version": _state.VERSION, "samples": self._loader.samples, "seed": self._seed,
                "cursor": self._loader.cursor, "batches": list(batches),
                "start_batches": list(self._start_batches), "base_batch": self._base_batch,
                "named_base": self._named_base, "base_rate": self._base_rate, "period": self._period,
                "iterations": self._iterations + ended, "in_window": in_window,
                "position": self._loader.cursor + self._ahead,
                **self._rounds.state(word)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was saved, on any number of ranks: the cursor, the global batch and
        what the learning rate is relative to stay. With another number of ranks the global batch is
        shared out equally and the policy starts to observe anew."""
        state = _state.read(state)
        if state["samples"] != self._loader.samples:
            raise _check.refused("samples", self._loader.samples, f"the {state['samples']} samples "
                                 "of the data set the job began with")
        if self._named_base not in (0, state["named_base"]):
            raise _check.refused("base_batch", self._named_base,
                                 f"{state['named_base'] or 'none'}, as in the job that is gone on with")
        self._seed = state["seed"]
        self._loader.restore(state["seed"], state["cursor"])
        self._base_batch, self._base_rate = state["base_batch"], state["base_rate"]
        if self._named_base != state["named_base"]:
            self._named_base = state["named_base"]
            bounds = self._make_bounds(self._exchange.size)
            self._bounds.min, self._bounds.max = bounds.min, bounds.max  # Rounds has them too
        self._period, self._iterations = state["period"], state["iterations"]
        self._ahead = state["position"] - state["cursor"]
        self._drop_window()
        self._exchange.reset()  # a loop may have been left in the middle of an iteration
        self._old_tails.clear()
        self._sums, self._handed, self._whole = Sums(), 0, True
        same_ranks = len(state["batches"]) == self._exchange.size
        if same_ranks:
            self._start_batches, batches = state["start_batches"], state["batches"]
            self._skipped = state["in_window"]
        else:
            size = self._exchange.size
            shares = [(sum(state["batches"]) + rank) // size for rank in range(size)]
            self._start_batches = batches = tuple(
                _core.clamp_batch(share, share, self._bounds) for share in shares)
        self._loader.set_batches(batches)
        self._rounds.restore(state, same_ranks)
        self._heard = not self._rounds.asking

    def close(self) -> None:
        """Leaves the arbitrator and ends the record. Without it the arbitrator is left when the
        process ends, and the record has no summary."""
        self._close()
        if self._recorder is not None:
            self._recorder.finish(samples=self.samples_seen, iterations=self._iterations)

    # The loop.

    def _hand_out(self, batch):
        asked, total, whole = self._loader.take()
        self._samples = self._count(batch, asked) if self._counts and asked > 0 else asked
        self._whole = self._whole and whole
        self._handed += 1
        word = None
        if self._counts or self._rounds.asking:
            word = self._rounds.say(self._loader.next_batches, self._period)
        self._exchange.begin(self._samples, None if self._counts else total, word)
        if self._loader.switching:
            self._drop_window()
        base = self._base()
        depends_on = (self._loader.batches, self._period, base, self._rounds.noise)
        if depends_on != self._factor_of:
            self._factor_of = depends_on
            self._rate.factor = _core.learning_rate_factor(
                self._rule, sum(self.batch_sizes) * self._period, base, self._rounds.noise)
            self._tell()
        if self._clock == "steps":  # a whole batch counts base batch x factor, a part of one its part
            self._ahead += total * (base / self._period * self._rate.factor / sum(self.batch_sizes) - 1)

    def _tell(self):
        """The log hears of the first batches, and of a global batch that has moved by half."""
        batch = sum(self.batch_sizes)
        if self._exchange.rank == 0 and not self._told / 1.5 < batch < 1.5 * self._told:
            self._told = batch
            log.info("%d samples per batch in %s, learning rate x %.2f", batch, self.batch_sizes, self._rate.factor)

    def _drop_window(self):
        """A window's numbers belong to one set of batches."""
        self._rows.clear()
        self._skipped = 0

    def _end_iteration(self):
        if not self._exchange.finished:
            return
        iteration, sums, handed, whole = (self._exchange.take(), self._sums, self._handed,
                                          self._whole)
        self._sums, self._handed, self._whole = Sums(), 0, True
        if handed == 0:  # a backward pass without a batch of ours
            return
        self._iterations += 1
        # A period counts when it comes twice: what an epoch leaves over makes one shorter or longer.
        if handed == self._last_handed != self._period:
            self._period = handed
            self._drop_window()
        self._last_handed = handed
        if self._rounds.asking:
            self._hear(self._exchange.tail)
        if self._loader.switching:
            self._drop_window()
        elif whole and handed == self._period:
            self._rows.add(iteration, sums, self._rate.rate())
            if len(self._rows) + self._skipped >= self._window_iterations and self._heard:
                self._end_window()

    def _hear(self, tail):
        """Ranks take their answers together, once all have theirs."""
        self._old_tails.append(tail)
        lag = 0 if self._exchange.device.type == "cpu" else _DEVICE_LAG
        if len(self._old_tails) <= lag:
            return
        self._heard = True
        batches = self._rounds.hear(self._old_tails.popleft().word())
        if batches is not None and batches != self._loader.next_batches:
            self._loader.switch(batches, self._period)

    def _end_window(self):
        with self._exchange.paused():  # else rank 0 would look slow by what its policy takes
            scale = 1.0 if self._scaler is None else self._scaler.get_scale()
            table = self._rows.table(scale)
            self._drop_window()
            self._rounds.close(table, self.batch_size, self._start_batches[self._exchange.rank],
                               self._period, self._settings(), self._progress())
        self._old_tails.clear()
        self._heard = not self._rounds.asking

    def _progress(self):
        """nan when nothing is planned."""
        if not self._epochs:
            return math.nan
        return min(1.0, (self._loader.cursor + self._ahead) / (self._epochs * self._loader.samples))

    def _base(self):
        """Samples of all ranks in an optimizer step that the optimizer's rates belong to."""
        return self._named_base or self._base_batch * self._period

    def _settings(self):
        return make_settings(self._rule, self._schedule, self._clock, self._adaptive,
                             self._base_rate, self._base(), self._target)

    def _see_output(self, model, inputs, output):
        """A model that returns its loss says it; other losses come by report()."""
        if not model.training or not torch.is_grad_enabled():
            return
        loss = output
        if not isinstance(output, torch.Tensor):
            loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        if isinstance(loss, torch.Tensor) and loss.dim() == 0:
            self.report(loss=loss)
