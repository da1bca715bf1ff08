"""Exact gradients from unequal batches: the communication hook of a DistributedDataParallel model.

DDP hands the hook each bucket with this rank's gradients, not divided by anything. With b_i the
samples that rank i really used since the last exchange, the hook makes of them

    g = sum_i (b_i / sum_j b_j) g_i

which is the gradient of one process on the union of the samples. The count of samples travels in a
small tensor of its own, the tail, that is sent when a batch is handed out, so that it is there
before the first bucket is ready. Weights never come from advice.

Everything happens on the model's device and nothing here waits for it: squared norms and times are
kept as tensors and events, and read once per window.
"""
import atexit
import contextlib
import functools
import time
import typing
import weakref

import numpy
import torch
import torch.distributed as dist

from dynamix import _check


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
    """What travels with an iteration besides gradients, summed over ranks: samples used, how many
    ranks are ready to switch, and each rank's next batch in its own slot."""

    READY, SLOTS = 1, 2

    def __init__(self, samples, ready, batch, rank, size, device, group):
        values = [0.0] * (self.SLOTS + size)
        values[0] = float(samples)
        values[self.READY] = float(ready)
        values[self.SLOTS + rank] = float(batch)
        self._sums = torch.tensor(values, dtype=torch.float64).to(device, non_blocking=True)
        self._work = dist.all_reduce(self._sums, group=group, async_op=True)
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

    def next_batches(self):
        """Each rank's next batch when all ranks are ready, else None. For a device's tail, ask some
        iterations later: the copy is then here and nobody waits."""
        self.samples()
        if self._copied is not None:
            self._copied.synchronize()
        if self._values is None:
            self._values = (self._sums if self._host is None else self._host).tolist()
        size = len(self._values) - self.SLOTS
        if self._values[self.READY] < size:
            return None
        return tuple(int(batch) for batch in self._values[self.SLOTS:])


def squared_norm(flat):
    """Of a bucket, as a tensor on its device, in float32 at least."""
    if flat.dtype in (torch.float32, torch.float64):
        return torch.dot(flat, flat)
    return torch.linalg.vector_norm(flat, dtype=torch.float32).square()


class Iteration(typing.NamedTuple):
    """What was measured of an iteration. Numbers may be tensors, and moments are the clock's."""

    samples: int  # own
    own_square: typing.Any       # squared norm of this rank's gradient
    averaged_square: typing.Any  # and of the job's
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
        self.clock = DeviceClock() if self.device.type == "cuda" else HostClock()
        self.finished = False  # an exchange happened since `take`
        self.tails = []        # of the batches since the last exchange, newest last
        self._samples = 0      # own, in these batches
        self._exchanged = False
        self._weight = None
        self._local, self._averaged = [], []  # squared norms per bucket, before and after
        self._begin = self._ready = self._done = None
        self._pauses = []  # of the iteration under way: (begin, end)
        self._later = []   # of the next one: after the exchange that ends this one
        self._stall = None
        self._under_way = []  # (weak reference to what a thread of the group holds, the hook's future)

    def attach(self, model):
        """From here on; a model takes one hook in its life."""
        try:
            model.register_comm_hook(self, _hook)
        except RuntimeError as error:
            raise _check.refused("model", type(model).__name__, "a model without a communication hook; "
                                 "adapt() takes a model once") from error
        atexit.register(_settle, self._under_way)

    def gather(self, own):
        """One row of numbers per rank."""
        own = torch.as_tensor(numpy.asarray(own, dtype=numpy.float64)).to(self.device)
        rows = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(rows, own, group=self.group)
        return torch.stack(rows).cpu().numpy()

    def broadcast(self, word):
        """Rank 0's numbers."""
        word = torch.as_tensor(word).to(self.device)
        dist.broadcast(word, _first_rank(self.group), group=self.group)
        return word.tolist()

    def begin(self, samples, ready, batch):
        """A batch of so many samples is handed out; `ready` and `batch` are this rank's words on
        the switch to come."""
        if self._exchanged:
            self._exchanged = False
            self._samples, self.tails, self._weight = 0, [], None
            self._local, self._averaged = [], []
            self._under_way[:] = [(sent, future) for sent, future in self._under_way if sent() is not None]
        self._samples += samples
        self.tails.append(Tail(samples, ready, batch, self.rank, self.size, self.device, self.group))

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
        self._local.append(squared_norm(buffer))
        if self.tails and self._samples == 0:
            buffer.zero_()  # an empty batch has no gradient, and its mean may be no number
        else:
            buffer.mul_(self._weight)
        if bucket.is_last():
            self._exchanged = self.finished = True
            self._ready = self.clock.stamp()
        sent = buffer.detach()  # the same memory in a tensor that nobody keeps but the group
        work = dist.all_reduce(sent, group=self.group, async_op=True)
        future = work.get_future().then(functools.partial(self._arrived, buffer))
        self._under_way.append((weakref.ref(sent), future))
        return future

    def _agree(self):
        if not self.tails:  # no batch of ours: as DDP does without a hook
            return 1.0 / self.size
        begin = self.clock.stamp()
        samples = sum(tail.samples() for tail in self.tails)
        self._stall = (begin, self.clock.stamp())
        return self._samples / samples if self._samples else 0.0

    def _arrived(self, average, future):
        future.value()  # raises what went wrong
        self._averaged.append(squared_norm(average))
        self._done = self.clock.stamp()
        return average


def _first_rank(group):
    """The global rank of the group's rank 0."""
    if group is None or group is dist.group.WORLD:
        return 0
    return dist.get_global_rank(group, 0)


def _settle(under_way, patience_s=5.0):
    """Before the interpreter ends: the group's threads call `_arrived` and let go of it and of its
    future after the optimizer could go on, and one that asks for the interpreter once it is ending
    aborts the process. What was sent is the last thing that they let go of."""
    deadline = time.monotonic() + patience_s
    while any(sent() is not None for sent, _ in under_way) and time.monotonic() < deadline:
        time.sleep(0.001)


def _hook(exchange, bucket):
    return exchange.send(bucket)
