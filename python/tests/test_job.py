"""Samples, speed, resuming, failures: what a job must keep whatever the sizes do."""
import contextlib
import logging
import time

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import dynamix
import dynamix.torch
from dynamix.torch import _exchange
from ranks import Wanders, network, run_ranks, samples, weights


class Numbered(torch.utils.data.Dataset):
    """Samples that say which they are; sample `broken` cannot be read."""

    def __init__(self, count, broken=None):
        self.count, self.broken = count, broken

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.broken:
            raise OSError(f"sample {index} is unreadable")
        return torch.full((6,), float(index)), index


def start(data, batch_size=8, model=None, rate=0.05, **options):
    model = DistributedDataParallel(model or network(), **options.pop("ddp", {}))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    options = {"monitor": "none", "guard": False, **options}
    return model, optimizer, dynamix.torch.adapt(model, optimizer, data, batch_size, **options)


def step(model, optimizer, inputs, targets):
    loss = nn.functional.cross_entropy(model(inputs), targets % 3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def read_epochs(rank, size, count, loader, epochs):
    model, optimizer, job = start(Numbered(count), 6, policy=Wanders(2, 14), min_batch=2, window=2,
                                  loader=loader)
    read, sizes = [], set()
    for epoch in range(epochs):
        read.append([])
        for inputs, numbers in job.batches(epoch):
            read[-1] += numbers.tolist()
            sizes.add(job.batch_sizes)
            assert len(numbers) < job.batch_size + 2 * size
            step(model, optimizer, inputs * 0, numbers)
    return read, len(sizes)


@pytest.mark.parametrize("count,loader", [(403, {}), (101, {}), (307, {"num_workers": 2})])
def test_every_sample_once_per_epoch_while_sizes_change(count, loader):
    found = run_ranks(3, read_epochs, count, loader, 3)
    for epoch in range(3):
        assert sorted(sum((read[epoch] for read, _ in found), [])) == list(range(count))
    assert found[0][1] > 2, "the sizes never changed"


def read_with_spawned_workers(rank, size):
    return read_epochs(rank, size, 60, {"num_workers": 1, "multiprocessing_context": "spawn",
                                        "persistent_workers": True}, 2)


def test_ranks_and_loader_workers_may_be_spawned():
    found = run_ranks(2, read_with_spawned_workers, start="spawn")
    for epoch in range(2):
        assert sorted(sum((read[epoch] for read, _ in found), [])) == list(range(60))


def read_a_broken_sample(rank, size, loader):
    model, optimizer, job = start(Numbered(64, broken=13), loader=loader)
    with pytest.raises(OSError, match="sample 13 is unreadable"):
        for inputs, numbers in job.batches(0):
            step(model, optimizer, inputs, numbers)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_data_set_throws_reaches_the_loop(workers):
    run_ranks(1, read_a_broken_sample, {"num_workers": workers})


def train_with_a_slow_rank(rank, size):
    """Rank 1 needs 6 ms per sample, rank 0 an eighth of that: more than a busy machine adds. Until the
    sizes have followed, which takes longer on such a machine."""
    model, optimizer, job = start(samples(2400), 16, policy="balanced", window=3)
    seconds = {}
    for inputs, targets in job.batches(0):
        began = time.perf_counter()
        time.sleep(len(targets) * (0.006 if rank else 0.00075))
        job.report(loss=step(model, optimizer, inputs, targets))
        seconds.setdefault(job.batch_sizes, []).append(time.perf_counter() - began)
        if job.batch_sizes[1] * 2 < job.batch_sizes[0] and len(seconds[job.batch_sizes]) == 6:
            break
    return job.batch_sizes, seconds


def test_a_slow_rank_gets_less_and_iterations_get_faster():
    (sizes, seconds), _ = run_ranks(2, train_with_a_slow_rank)
    assert sizes[1] * 2 < sizes[0], sizes
    # The fastest of each: what else the machine does comes on top.
    assert min(seconds[sizes]) < 0.75 * min(seconds[16, 16])


def train_a_part(rank, size, state, epochs, stop):
    model, optimizer, job = start(Numbered(331), 10, policy="static", window=3)
    if state:
        job.load_state_dict(state["job"])
        model.load_state_dict(state["model"])
    read = []
    for epoch in range(job.epoch, epochs):
        for inputs, numbers in job.batches(epoch):
            read += numbers.tolist()
            step(model, optimizer, inputs * 0, numbers)
            if stop and job.samples_seen >= stop:
                return read, {"job": job.state_dict(), "model": model.state_dict()}, job.batch_sizes
    return read, None, job.batch_sizes


def test_a_job_of_four_ranks_goes_on_with_three():
    first = run_ranks(4, train_a_part, None, 2, 120)
    then = run_ranks(3, train_a_part, first[0][1], 2, None)
    assert sum(then[0][2]) == pytest.approx(40, abs=2), "the global batch stays"
    read = sum((part[0] for part in first + then), [])
    assert sorted(read) == sorted(list(range(331)) * 2)


class Climbs:
    """Two samples more in every round it has seen."""

    def __init__(self):
        self.seen = 0

    def decide(self, round, states):
        self.seen += 1
        return [6 + 2 * self.seen + rank for rank in range(len(round.entries))]

    def state(self):
        return [self.seen]

    def restore(self, state):
        self.seen = int(state[0])


def train_and_resume(rank, size, cut):
    """14 iterations, `cut` of them in a first process's life."""
    def run(state, until):
        model, optimizer, job = start(samples(400), 6, policy=Climbs(), window=3, rule="linear",
                                      rate=0.01)
        if state:
            job.load_state_dict(state[0])
            model.load_state_dict(state[1])
            optimizer.load_state_dict(state[2])
        sizes = []
        for inputs, targets in job.batches(job.epoch):
            sizes.append(job.batch_sizes)
            job.report(loss=step(model, optimizer, inputs, targets))
            if job.state_dict()["iterations"] == until:
                break
        return (job.state_dict(), model.state_dict(), optimizer.state_dict()), sizes, weights(model)

    state, first, end = run(None, cut)
    if cut == 14:
        return first, end
    last, then, end = run(state, 14)
    assert last[0]["memory"].numel() == state[0]["memory"].numel(), "grows with the job"
    return first + then, end


@pytest.mark.parametrize("cut", [4, 5, 6])  # the first window ends after 3
def test_a_resumed_job_goes_on_as_if_never_stopped(cut):
    whole = run_ranks(2, train_and_resume, 14)[0]
    parts = run_ranks(2, train_and_resume, cut)[0]
    assert whole[0] == parts[0]
    assert len(set(whole[0])) > 2, "the sizes never changed"
    assert torch.equal(whole[1], parts[1])


def train_epochs(rank, size, lives):
    """Epochs that are as long as a window at first: what it decided is not yet agreed on when the
    loop is over."""
    state, sizes = None, []
    for first, last in lives:
        model, optimizer, job = start(samples(36), 6, policy=Climbs(), window=3, rule="linear", rate=0.01)
        if state:
            job.load_state_dict(state[0])
            model.load_state_dict(state[1])
            optimizer.load_state_dict(state[2])
        for epoch in range(first, last):
            for inputs, targets in job.batches(epoch):
                sizes.append(job.batch_sizes)
                job.report(loss=step(model, optimizer, inputs, targets))
        state = job.state_dict(), model.state_dict(), optimizer.state_dict()
    return sizes, weights(model)


def test_a_decision_between_epochs_is_kept():
    whole = run_ranks(2, train_epochs, [(0, 4)])[0]
    parts = run_ranks(2, train_epochs, [(0, 1), (1, 4)])[0]
    assert whole[0] == parts[0]
    assert whole[0][2:5] == [(6, 6), (6, 6), whole[0][4]] and whole[0][4] != (6, 6), "decided elsewhere"
    assert torch.equal(whole[1], parts[1])


def roll_back(rank, size):
    """Goes back to a state with a decision on its way, from a loop that was left after a step."""
    model, optimizer, job = start(samples(36), 6, policy=Climbs(), window=3, rule="linear", rate=0.01)

    def train(epoch, leave_after=99):
        sizes = []
        for inputs, targets in job.batches(epoch):
            sizes.append(job.batch_sizes)
            step(model, optimizer, inputs, targets)
            if len(sizes) == leave_after:
                break
        return sizes

    train(0)
    saved = job.state_dict()
    first = train(1, leave_after=2)
    job.load_state_dict(saved)
    return saved["asking"], first, train(1), job.samples_seen


def test_a_job_that_is_rolled_back_goes_on_from_there():
    asking, first, again, seen = run_ranks(2, roll_back)[0]
    assert asking == 1 and first == again[:2] and len(set(first)) == 2
    assert seen == 72


def roll_back_accumulation(rank, size):
    """The same from between the two batches of an iteration, wherever a window may have ended."""
    model, optimizer, job = start(samples(400), 6, policy=Climbs(), window=2, rule="linear", rate=0.01)
    begun = job.state_dict()

    def train(leave_after):
        for number, (inputs, targets) in enumerate(job.batches(0), 1):
            with model.no_sync() if number % 2 else contextlib.nullcontext():
                nn.functional.cross_entropy(model(inputs), targets).backward()
            if number % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
            if number == leave_after:
                break
        optimizer.zero_grad()

    for leave_after in range(3, 14, 2):
        train(leave_after)
        job.load_state_dict(begun)
    train(12)
    return job.batch_sizes


def test_so_does_one_that_accumulates():
    sizes = run_ranks(2, roll_back_accumulation)
    assert sizes[0] == sizes[1] != (6, 6)


class Looks:
    """Keeps what the workers measured."""

    def __init__(self):
        self.seen = []

    def decide(self, round, states):
        self.seen.append({field: round.numbers(field).tolist() for field in (
            "network.tier", "network.bytes_sent", "host.cpu_use", "host.memory_used_bytes",
            "iteration_ms", "compute_ms", "wait_ms", "communication_ms", "training.loss",
            "training.accuracy", "training.learning_rate", "training.progress", "iterations")})
        return round.batches


def train_and_look(rank, size):
    policy = Looks()
    model, optimizer, job = start(samples(960), 16, policy=policy, window=5, monitor="ebpf", epochs=2)
    for inputs, targets in job.batches(0):
        job.report(loss=step(model, optimizer, inputs, targets), accuracy=0.25)
    return policy.seen


class Doubles:
    """Twice the batch in every round, up to 64."""

    def decide(self, round, states):
        return [min(64, 2 * batch) for batch in round.batches]


def train_and_listen(rank, size):
    heard = []
    log = logging.getLogger("dynamix")
    log.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    log.addHandler(handler)
    model, optimizer, job = start(samples(2400), 8, policy=Doubles(), window=3, rule="linear")
    for inputs, targets in job.batches(0):
        step(model, optimizer, inputs, targets)
    return heard


def test_the_log_says_what_begins_and_what_changed():
    heard, nothing = run_ranks(2, train_and_listen)
    assert nothing == [], "rank 0 speaks for all"
    assert heard[0] == "policy Doubles, rule linear, batches of 1 to 64 samples per rank"
    assert heard[1:] == [f"{2 * batch} samples per batch in ({batch}, {batch}), learning rate x {batch / 8:.2f}"
                         for batch in (8, 16, 32, 64)]


class Ponders(Looks):
    """Takes its time."""

    def decide(self, round, states):
        time.sleep(0.5)
        return super().decide(round, states)


def train_slowly_advised(rank, size):
    policy = Ponders()
    model, optimizer, job = start(samples(480), 16, policy=policy, window=5)
    for inputs, targets in job.batches(0):
        step(model, optimizer, inputs, targets)
    return policy.seen


def test_what_the_policy_takes_is_nobodys_compute():
    seen = run_ranks(2, train_slowly_advised)[0]
    assert len(seen) == 3
    for one in seen:  # a tenth of a second an iteration, were it counted
        assert max(one["compute_ms"]) < 50


class Ticks:
    """A clock on which every look takes a millisecond."""

    now = 0.0

    def perf_counter(self):
        self.now += 0.001
        return self.now


def train_with_pauses(rank, size):
    policy, clock = Looks(), Ticks()
    _exchange.time = clock
    model, optimizer, job = start(samples(960), 16, policy=policy, window=5)
    for number, (inputs, targets) in enumerate(job.batches(0)):
        step(model, optimizer, inputs, targets)
        if number % 5 == 4:  # between the last iteration of a window and the first of the next
            with job.paused():
                clock.now += 1000.0
    return policy.seen


def test_a_pause_belongs_to_no_iteration():
    seen = run_ranks(2, train_with_pauses)[0]
    assert len(seen) == 6
    for window in seen:
        assert all(0 <= milliseconds < 100 for milliseconds in window["compute_ms"]), window


def test_reports_hold_what_network_host_and_training_did():
    """The monitor comes along; which network source it takes depends on the privileges."""
    seen, nothing = run_ranks(2, train_and_look)
    assert nothing == [], "rank 0 decides"
    last = seen[-1]
    assert min(last["network.tier"]) > 0 and min(last["network.bytes_sent"]) > 1000
    assert int(dynamix._core.NetworkTier.inet_diag) not in last["network.tier"], "too dear for every window"
    assert all(0 <= use <= 1 for use in last["host.cpu_use"])
    assert min(last["host.memory_used_bytes"]) > 1e6
    for whole, *parts in zip(*(last[name] for name in ("iteration_ms", "compute_ms", "wait_ms",
                                                       "communication_ms"))):
        assert whole > 0 and min(parts) >= 0 and sum(parts) == pytest.approx(whole)
    assert min(last["wait_ms"]) == pytest.approx(0, abs=0.5 * max(last["iteration_ms"]))
    assert last["training.accuracy"] == [0.25, 0.25] and 0 < last["training.loss"][0] < 3
    assert last["training.learning_rate"] == [0.05, 0.05] and last["iterations"] == [5, 5]
    assert last["training.progress"][0] == pytest.approx(0.5, abs=0.05)
