"""Batches whose size changes while a DataLoader and its workers keep running.

The C++ sampler says which samples each rank reads: one seeded permutation per epoch and one cursor
that all ranks advance by the same batches, so each sample is read once per epoch whatever the sizes
do. A DataLoader asks for index lists ahead of time (num_workers x prefetch_factor of them); a switch
therefore takes effect with the first batch that no rank has asked for yet.
"""
from collections import deque
from collections.abc import Mapping, Sequence

import torch

from dynamix import _check, _core

_OURS = ("batch_size", "shuffle", "sampler", "batch_sampler")


class Loader:
    def __init__(self, dataset, seed, rank, batches, options):
        options = dict(_check.of_type("loader", options, (Mapping,), "a dictionary"))
        for name in _OURS:
            if name in options:
                raise _check.refused(f"loader[{name!r}]", type(options[name]).__name__, "what a DataLoader takes "
                                     "besides batch_size, shuffle, sampler and batch_sampler: the job decides "
                                     "which samples a rank reads")
        if options.get("in_order", True) is False:  # PyTorch 2.6
            raise _check.refused("loader['in_order']", False, "batches in the order of their samples")
        if isinstance(dataset, torch.utils.data.DataLoader):
            raise _check.refused("dataset", "DataLoader", "the data set itself (loader.dataset): the job makes the loader")
        if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__len__"):
            raise _check.refused("dataset", type(dataset).__name__, "a map-style data set with len()")
        self._samples = len(dataset)
        if self._samples < len(batches):
            raise _check.refused("dataset", f"{self._samples} samples",
                                 f"at least one for each of {len(batches)} ranks")
        workers = _check.whole("loader['num_workers']", options.get("num_workers", 0), 0, 1 << 16)
        self._drop_last = options.pop("drop_last", False)
        # The user's code makes a batch of samples, and may leave some out.
        self.may_drop = options.get("collate_fn") is not None or hasattr(dataset, "__getitems__")
        self._seed, self._rank = seed, rank
        self.depth = 0  # batches a rank asks for ahead; the job sets the largest of all ranks
        if workers > 0:
            ahead = options.get("prefetch_factor")
            self.depth = workers * (2 if ahead is None else
                                    _check.whole("loader['prefetch_factor']", ahead, 1, 1 << 16))
        self.batches = tuple(batches)  # in force for the batch handed out last
        self.cursor = 0                # samples handed out to the job
        self.taken = 0                 # batches handed out
        self._planned = 0              # batches asked for
        self._next = self.batches      # in force for the batch planned next
        self._switch = None            # (batch number, batches): the next switch
        self._ahead = deque()          # planned and not yet handed out
        self._sampler = None
        try:
            self._loader = torch.utils.data.DataLoader(dataset, batch_sampler=_Plan(self), **options)
        except (TypeError, ValueError) as error:
            raise _core.InputError(f"loader: {error}") from error

    @property
    def samples(self):
        return self._samples

    @property
    def switching(self):
        """A switch was agreed on and the batch handed out last is still of the old sizes."""
        return self._next != self.batches or self._switch is not None

    @property
    def next_batches(self):
        """In force once everything agreed on has happened."""
        return self._switch[1] if self._switch else self._next

    def switch(self, batches, period):
        """These sizes from the first batch on that nobody has asked for, a whole number of
        iterations of `period` batches from here."""
        wait = -(-self.depth // period) * period
        self._switch = (self.taken + wait, tuple(batches))

    def set_batches(self, batches):
        """These sizes at once; between epochs."""
        self._switch = None
        self.batches = self._next = tuple(batches)

    def epoch(self, epoch, unfinished):
        """The DataLoader's batches from where the cursor is in this epoch, or from its start. The
        iteration under way takes `unfinished` more; a switch that was agreed on follows it."""
        if epoch != self.cursor // self._samples:
            self.cursor = epoch * self._samples
        self.rewind()
        if self.switching:
            self._switch, self._next = (self.taken + unfinished, self.next_batches), self.batches
        return iter(self._loader)

    def rewind(self):
        """Forgets what was planned and never handed out."""
        self._ahead.clear()
        self._planned = self.taken
        self._sampler = _core.Sampler(self._samples, self._seed, self.cursor)

    def plan(self):
        """This rank's samples of one batch after another, to the end of the epoch."""
        sampler = self._sampler
        epoch = sampler.epoch
        while sampler.epoch == epoch:
            if self._switch and self._planned >= self._switch[0]:
                self._next, self._switch = self._switch[1], None
            parts = sampler.within_epoch(self._next)
            if self._drop_last and sum(parts) != sum(self._next):  # every batch is whole
                if sum(parts) < sum(self._next):
                    return
                parts = list(self._next)
            # A rank that the last few samples of an epoch leave out reads one of them too, because
            # it must take part in the exchange; its weight is 0.
            own = sampler.part(parts, self._rank) or sampler.part([1], 0)
            sampler.advance(parts)
            self._ahead.append((self._next, parts))
            self._planned += 1
            yield own

    def take(self):
        """The next planned batch is handed out. Returns how many of its samples are this rank's and
        how many all ranks', and whether it is of the sizes in force (the last one of an epoch may not
        be)."""
        self.batches, parts = self._ahead.popleft()
        total = sum(parts)
        self.cursor += total
        self.taken += 1
        return parts[self._rank], total, tuple(parts) == self.batches

    def restore(self, seed, cursor):
        """Goes on at `cursor` of the stream that `seed` orders; between epochs."""
        self._seed, self.cursor = seed, cursor
        self.rewind()


class _Plan:
    """The DataLoader's batch sampler."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        return self._loader.plan()


def count_samples(batch, asked):
    """Samples in what the collate function made of `asked` samples: the first dimension of its
    first tensor. More than `asked` cannot be: the batch is then not the first dimension."""
    found = _first_length(batch)
    return asked if found is None or found > asked else found


def _first_length(batch):
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() > 0 else None
    if isinstance(batch, (str, bytes)):
        return None
    if hasattr(batch, "shape"):
        return batch.shape[0] if len(batch.shape) > 0 else None
    items = batch.values() if isinstance(batch, Mapping) else batch
    if not isinstance(batch, (Mapping, Sequence)):
        return None
    for item in items:
        found = _first_length(item)
        if found is not None:
            return found
    return None
