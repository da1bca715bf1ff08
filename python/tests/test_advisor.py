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


def train_advised(rank, size, address, kill):
    """An epoch under an arbitrator; rank 0 ends it once its advice was taken."""
    model, optimizer, job = start(samples(4000), 8, advisor=address, job="python", window=2,
                                  max_batch=32)
    sizes = set()
    for inputs, targets in job.batches(0):
        sizes.add(job.batch_sizes)
        step(model, optimizer, inputs, targets)
        if len(sizes) > 1 and kill is not None:
            if rank == 0:
                kill.set()
                time.sleep(0.2)
            kill = None
    return job.samples_seen, sizes, job.summary()


@pytest.fixture
def arbitrator(program, source, tmp_path):
    with Arbitrator(Place(program, "", source, tmp_path), policy="static:12",
                    flags=["--no-guard"]) as running:
        yield running


def test_all_ranks_take_the_advice_together(arbitrator):
    found = run_ranks(2, train_advised, arbitrator.address, None)
    for seen, sizes, summary in found:
        assert seen == 4000
        assert sizes == {(8, 8), (12, 12)}
        assert summary["advised"] > 0


def test_training_goes_on_when_the_arbitrator_is_killed(arbitrator):
    advised = multiprocessing.get_context("fork").Event()
    killer = threading.Thread(target=lambda: advised.wait(60) and arbitrator.send(signal.SIGKILL))
    killer.start()
    found = run_ranks(2, train_advised, arbitrator.address, advised)
    killer.join()
    assert arbitrator.process.poll() == -signal.SIGKILL
    for seen, sizes, summary in found:
        assert seen == 4000
        assert sizes == {(8, 8), (12, 12)}


def test_training_without_any_arbitrator_keeps_its_batches():
    for seen, sizes, summary in run_ranks(2, train_advised, "127.0.0.1:1", None):
        assert seen == 4000 and sizes == {(8, 8)} and summary["advised"] == 0


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
