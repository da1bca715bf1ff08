"""Advice of a real arbitrator, and its end in the middle of an epoch."""
import multiprocessing
import signal
import threading
import time

import pytest

import dynamix
import dynamix.torch
from arbitrator_processes import Arbitrator, Place
from ranks import run_ranks, samples
from test_job import start, step


SAMPLES, START, ADVISED = 400, (8, 8), (12, 12)


def train_until(rank, size, address, wanted, kill=None):
    """Whole epochs until batches of `wanted` were used: ranks may be faster than the arbitrator. Rank 0
    then has it killed, and goes on when it is dead."""
    model, optimizer, job = start(samples(SAMPLES), START[0], advisor=address, job="python", window=2,
                                  max_batch=32)
    sizes = []
    for epoch in range(1000):
        for inputs, targets in job.batches(epoch):
            sizes.append(job.batch_sizes)
            step(model, optimizer, inputs, targets)
            if kill is not None and sizes[-1] == wanted:
                if rank == 0:
                    wish, dead = kill
                    wish.set()
                    assert dead.wait(60)
                kill = None
        if wanted in sizes:
            break
    return job.samples_seen, sizes, job.summary()


@pytest.fixture
def arbitrator(program, source, tmp_path):
    with Arbitrator(Place(program, "", source, tmp_path), policy="static:12",
                    flags=["--no-guard"]) as running:
        yield running


def test_all_ranks_take_the_advice_together(arbitrator):
    found = run_ranks(2, train_until, arbitrator.address, ADVISED)
    assert found[0][1] == found[1][1]
    for seen, sizes, summary in found:
        assert seen % SAMPLES == 0
        assert sizes[0] == START and sizes[-1] == ADVISED
        assert summary["advised"] > 0


def begin(rank, size, address):
    advisor = {"addresses": address, "opening_s": 60}
    _, _, job = start(samples(SAMPLES), 16, advisor=advisor, job="begins", base_batch=16)
    return job.batch_sizes, job.summary()["start_batch_sizes"]


def test_an_arbitrator_says_where_a_job_begins(program, source, tmp_path):
    with Arbitrator(Place(program, "", source, tmp_path), policy="base") as running:
        for opened, given in run_ranks(2, begin, running.address):
            assert opened == (8, 8) and given == [16, 16]


def test_training_goes_on_when_the_arbitrator_is_killed(arbitrator):
    wish, dead = (multiprocessing.get_context("fork").Event() for _ in range(2))

    def kill():
        if wish.wait(120):
            arbitrator.send(signal.SIGKILL)
            arbitrator.process.wait()
            dead.set()

    killer = threading.Thread(target=kill)
    killer.start()
    found = run_ranks(2, train_until, arbitrator.address, ADVISED, (wish, dead))
    killer.join()
    for seen, sizes, summary in found:
        assert seen % SAMPLES == 0
        assert sizes[0] == START and ADVISED in sizes


def test_training_without_any_arbitrator_keeps_its_batches():
    for seen, sizes, summary in run_ranks(2, train_until, "127.0.0.1:1", START):
        assert seen == SAMPLES and set(sizes) == {START} and summary["advised"] == 0


def test_a_worker_of_any_loop_takes_advice_and_measures_its_host(arbitrator):
    worker = dynamix.Worker(arbitrator.address, batch_size=8, window=2, job="loop")
    end = time.monotonic() + 60
    while worker.batch_size != 12 and time.monotonic() < end:
        worker.end_iteration(iteration_ms=5.0, compute_ms=4.0, loss=1.0)
        time.sleep(0.005)
    assert worker.batch_size == 12
    assert worker.counts()["advised"] > 0
    with pytest.raises(dynamix.InputError, match="compute_ms"):
        worker.end_iteration(speed=3)
    worker.close()
