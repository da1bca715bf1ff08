"""Exact gradients from unequal batches: the communication hook of a DistributedDataParallel model.

DDP hands the hook each bucket with this rank's gradients, not divided by anything. With b_i the
samples that rank i really used since the last exchange, the hook makes of them

    g = sum_i (b_i / sum_j b_j) g_i

which is the gradient of one process on the union of the samples. Every rank knows the b_j, because
all plan the same batches; when a collate function may leave samples out, they travel in a small
tensor of their own, the tail, that is sent when a batch is handed out, so that it is there before
the first bucket is ready. Weights never come from advice.

Everything happens on the model's device and nothing here waits for it: squared norms and times are
kept as tensors and events, and read once per window. On a CPU the last bucket's hook waits for all
buckets, as DDP would right after it.
"""
import atexit
import collections
import contextlib
import ctypes
import time
import typing
import weakref

import numpy
import torch
import torch.distributed as dist

from dynamix import _check, _core

_ITEMS = {torch.float32: 4, torch.float64: 8}  # bytes of a number
_SMALL = 1 << 16  # numbers that are not worth several threads


# The works and tensors that were given to a group last. A thread of the group holds a work for some
# time after it is done; were it the last to let go of the tensor while the interpreter ends, it would
# ask for the interpreter, and abort the process. So these outlive everything.
_given = collections.deque(maxlen=16)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_given))


def sum_over_ranks(tensor, group):
    """The work that sums `tensor`, a small one, over the ranks of `group`, in place."""
    work = group.allreduce([tensor])
    _given.append((work, tensor))
    return work


class HostClock:
    """Moments of a CPU job."""

    def stamp(self):
        return time.perf_counter()

    def milliseconds(self, begin, end):
        return 1e3 * (end - begin)


class DeviceClock:
    """Moments on the device's stream; read them once the device has come that far."""

    def stamp(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, begin, end):
        end.synchronize()
        return begin.elapsed_time(end)


class Tail:
    """What travels with an iteration besides gradients, summed over ranks: samples used, and a word,
    numbers that mean something to _rounds.py."""

    def __init__(self, samples, word, device, group):
        self._sums = torch.tensor([samples, *word], dtype=torch.float64).to(device, non_blocking=True)
        self._work = sum_over_ranks(self._sums, group)
        self._host = None
        self._copied = None
        self._values = None  # the sums as numbers

    def samples(self):
        """The job's samples: a number, or on a device a tensor."""
        if self._work is not None:
            self._work.wait()
            self._work = None
            if self._sums.device.type == "cpu":
                self._values = self._sums.tolist()
            elif self._sums.is_cuda:
                self._host = torch.empty(self._sums.shape, dtype=self._sums.dtype, pin_memory=True)
                self._host.copy_(self._sums, non_blocking=True)
                self._copied = torch.cuda.Event()
                self._copied.record()
        return self._sums[0] if self._values is None else self._values[0]

    def word(self):
        """For a device's tail, ask some iterations later: the copy is then here and nobody waits."""
        self.samples()
        if self._copied is not None:
            self._copied.synchronize()
        if self._values is None:
            self._values = (self._sums if self._host is None else self._host).tolist()
        return self._values[1:]


def _item(flat):
    """Bytes of a number when it is ours to compute with, else 0. One thread does it best in one pass
    over the memory; the rest is PyTorch's."""
    item = _ITEMS.get(flat.dtype, 0)
    if item and flat.is_cpu and (flat.numel() <= _SMALL or torch.get_num_threads() == 1):
        return item
    return 0


def squared_norm(flat, begin, end):
    """Of a part: a number, or a tensor on its device; in float32 at least."""
    item = _item(flat)
    if item:
        return _core.squared_norm(flat.data_ptr() + begin * item, end - begin, item == 8)
    part = flat[begin:end]
    if flat.dtype in _ITEMS:
        return torch.dot(part, part)
    return torch.linalg.vector_norm(part, dtype=torch.float32).square()


def scale(flat, weight):
    """Multiplies in place; returns the squared norm before."""
    item = _item(flat)
    if item:
        return _core.scale(flat.data_ptr(), flat.numel(), item == 8, weight)
    square = squared_norm(flat, 0, len(flat))
    flat.mul_(weight)
    return square


class Iteration(typing.NamedTuple):
    """What was measured of an iteration. Numbers may be tensors, and moments are the clock's."""

    samples: int  # own
    own_square: typing.Any       # squared norm of this rank's gradient
    averaged_square: typing.Any  # and of this rank's share of the job's
    begin: typing.Any            # end of the exchange before
    ready: typing.Any            # the last gradient is there
    done: typing.Any             # the last average is there
    pauses: list                 # between begin and ready
    stall: typing.Any            # also between them: begin and end of the wait for others' counts


class Exchange:
    """The hook and what it measures. One per model."""

    def __init__(self, model):
        self.group = model.process_group
        self.rank = dist.get_rank(self.group)
        self.size = dist.get_world_size(self.group)
        self.device = next(p for p in model.parameters() if p.requires_grad).device
        self._devices = [self.device] if self.device.type == "cuda" else []
        self.clock = DeviceClock() if self._devices else HostClock()
        self.finished = False  # an exchange happened since `take`
        self.tail = None       # of the batch handed out last, if it was sent with one
        self._totals = []      # samples of all ranks in each batch since the last exchange, or its tail
        self._samples = 0      # own, in these batches
        self._exchanged = False
        self._weight = None
        self._sent = []        # (work, bucket, future) of the exchange under way or before
        self._local, self._averaged = [], []  # squared norms per bucket, before and after
        self._begin = self._ready = self._done = None
        self._pauses = []  # of the iteration under way: (begin, end)
        self._later = []   # of the next one: after the exchange that ends this one
        self._stall = None

    def attach(self, model):
        """From here on; a model takes one hook in its life."""
        try:
            model.register_comm_hook(self, Exchange.send)
        except RuntimeError as error:
            raise _check.refused("model", type(model).__name__, "a model without a communication hook; "
                                 "adapt() takes a model once") from error
        atexit.register(_keep_sent, weakref.ref(self))

    def gather(self, own):
        """One row of numbers per rank."""
        rows = numpy.zeros((self.size, len(own)))
        rows[self.rank] = own
        return self._sum(rows)

    def broadcast(self, word):
        """Rank 0's numbers."""
        return self._sum(word if self.rank == 0 else numpy.zeros_like(word)).tolist()

    def _sum(self, numbers):
        """Over ranks. The group knows this call by heart: gradients take it."""
        numbers = torch.from_numpy(numbers).to(self.device)
        sum_over_ranks(numbers, self.group).wait()
        return numbers.cpu().numpy()

    def begin(self, samples, total, word):
        """A batch of so many samples is handed out, `total` on all ranks; when that is None they are
        counted. `word` is what else is to be agreed on, if anything."""
        if self._exchanged:
            self._exchanged = False
            self._samples, self._totals, self._weight = 0, [], None
            self._local, self._averaged = [], []
        self._samples += samples
        self.tail = None if word is None else Tail(samples, word, self.device, self.group)
        self._totals.append(self.tail if total is None else total)

    def reset(self):
        """Forgets the iteration under way."""
        self.finished = self._exchanged = False
        self.tail, self._totals, self._samples, self._weight = None, [], 0, None
        self._local, self._averaged, self._pauses, self._later, self._stall = [], [], [], [], None

    def restart_clock(self):
        """What lies before this moment belongs to no iteration."""
        self._begin = self.clock.stamp()

    @contextlib.contextmanager
    def paused(self):
        """What happens inside belongs to no iteration."""
        begin = self.clock.stamp()
        yield
        (self._later if self.finished else self._pauses).append((begin, self.clock.stamp()))

    def take(self):
        """The iteration that was exchanged last."""
        self.finished = False
        iteration = Iteration(self._samples, sum(self._local), sum(self._averaged), self._begin,
                              self._ready, self._done, self._pauses, self._stall)
        self._begin, self._stall = self._done, None
        self._pauses, self._later = self._later, []
        return iteration

    def send(self, bucket):
        buffer = bucket.buffer()
        if self._exchanged:  # another backward pass over the same batch
            self._exchanged = False
            self._local, self._averaged = [], []
        if self._weight is None:
            self._weight = self._agree()
        if bucket.index() == 0:
            self._sent.clear()
        self._local.append(scale(buffer, self._weight))
        if self._totals and self._samples == 0:
            buffer.zero_()  # an empty batch has no gradient, and its mean may be no number
        last = bucket.is_last()
        if last:
            self._ready = self.clock.stamp()
        future = torch.futures.Future(devices=self._devices)
        self._sent.append((self.group.allreduce([buffer]), buffer, future))
        if last:
            self._receive()
        return future

    def _receive(self):
        """Nothing is left to be computed that the exchange could hide behind."""
        for work, average, future in self._sent:
            work.wait()
            # Each rank a share of the same numbers; the shares meet at the end of the window.
            count = average.numel()
            self._averaged.append(squared_norm(average, self.rank * count // self.size,
                                               (self.rank + 1) * count // self.size))
            future.set_result(average)
        self._done = self.clock.stamp()
        self._exchanged = self.finished = True

    def _agree(self):
        if not self._totals:  # no batch of ours: as DDP does without a hook
            return 1.0 / self.size
        if not isinstance(self._totals[-1], Tail):  # all of them, or none
            samples = sum(self._totals)
        else:
            begin = self.clock.stamp()
            samples = sum(total.samples() for total in self._totals)
            self._stall = (begin, self.clock.stamp())
        return self._samples / samples if self._samples else 0.0


def _keep_sent(exchange):
    """As the interpreter ends: its buckets outlive everything, as _given does."""
    if exchange() is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(exchange()))
