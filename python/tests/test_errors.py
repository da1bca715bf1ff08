"""Bad input is refused at the door, with field, value and what is allowed; nothing else breaks."""
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import dynamix
import dynamix.torch
from ranks import Wanders, network, run_ranks, samples
from test_job import Numbered, start, step

BAD_OPTIONS = [
    ({"advisor": ""}, "advisor = "),
    ({"advisor": 3}, "advisor = 3"),
    ({"advisor": {"addresses": "a:1", "tokens": "secret"}}, r"advisor = \['addresses', 'tokens'\]"),
    ({"advisor": "a:1", "job": "no name"}, "job = no name"),
    ({"rule": "cubic"}, "rule = cubic is not allowed"),
    ({"rule": 3}, "rule = 3"),
    ({"policy": "nonsense"}, "policy = nonsense"),
    ({"policy": 3}, "policy = 3"),
    ({"min_batch": 9}, "batch_size = 8"),
    ({"max_batch": "x"}, "max_batch = x"),
    ({"granularity": 0}, "granularity = 0"),
    ({"loader": {"shuffle": True}}, "shuffle"),
    ({"loader": 3}, "loader = 3"),
    ({"loader": {"in_order": False}}, "in_order"),
    ({"monitor": "xray"}, "monitor = xray"),
    ({"monitor": None}, "monitor = None"),
    ({"schedule": "sine"}, "schedule = sine"),
    ({"target": "high"}, "target = high"),
    ({"target": 7}, "target = 7"),
    ({"target": {"loss": 0}}, "target = {'loss': 0}"),
    ({"target": {"accuracy": 0.9, "loss": 1.0}}, "target = "),
    ({"window": 0}, "window = 0"),
    ({"seed": -1}, "seed = -1"),
    ({"epochs": 2.5}, "epochs = 2.5"),
    ({"scaler": 3}, "scaler = 3"),
    ({"count": 3}, "count = 3"),
    ({"run": 3}, "run = 3"),
]


def refuse_options(rank, size):
    for options, sentence in BAD_OPTIONS:
        with pytest.raises(dynamix.InputError, match=sentence):
            start(samples(), 8, **options)
    for batch_size in ("64", 6.5, None, 0, -3):
        with pytest.raises(dynamix.InputError, match=f"batch_size = {batch_size} is not allowed"):
            start(samples(), batch_size)
    with pytest.raises(dynamix.InputError, match="dataset = list_iterator"):
        start(iter([]))
    with pytest.raises(dynamix.InputError, match="model = Sequential"):
        dynamix.torch.adapt(network(), None, samples(), 8)
    with pytest.raises(dynamix.InputError, match="optimizer = int"):
        dynamix.torch.adapt(DistributedDataParallel(network()), 3, samples(), 8)


def test_bad_options_are_refused_with_field_value_and_what_is_allowed():
    run_ranks(1, refuse_options)


def refuse_calls(rank, size):
    model, optimizer, job = start(samples())
    for epoch in ("x", -1, 1.5):
        with pytest.raises(dynamix.InputError, match=f"epoch = {epoch}"):
            next(job.batches(epoch))
    for loss in ("low", torch.ones(3)):
        with pytest.raises(dynamix.InputError, match="loss = "):
            job.report(loss=loss)
    for state in (None, {}, {"version": 99}):
        with pytest.raises(dynamix.InputError, match="version = "):
            job.load_state_dict(state)
    with pytest.raises(dynamix.InputError, match="samples = 240"):
        job.load_state_dict({**job.state_dict(), "samples": 7})


def test_bad_calls_of_a_job_are_refused():
    run_ranks(1, refuse_calls)


def refuse_options_that_differ(rank, size):
    with pytest.raises(dynamix.InputError, match=r"dataset = \[240, 241\]"):
        start(samples(240 + rank))
    with pytest.raises(dynamix.InputError, match=r"window = \[3, 4\]"):
        start(samples(), window=3 + rank)


def test_ranks_that_would_wait_for_each_other_for_ever_are_told():
    run_ranks(2, refuse_options_that_differ)


def read_few_samples(rank, size, count):
    if count < size:
        with pytest.raises(dynamix.InputError, match=f"dataset = {count} samples"):
            start(Numbered(count))
        return []
    model, optimizer, job = start(Numbered(count), 4)
    read = []
    for epoch in range(2):
        for inputs, numbers in job.batches(epoch):
            step(model, optimizer, inputs * 0, numbers)
            read += numbers.tolist()
    return read


@pytest.mark.parametrize("count", [0, 2, 3, 4, 7])
def test_a_data_set_smaller_than_a_batch_is_read_and_one_smaller_than_the_ranks_refused(count):
    found = run_ranks(3, read_few_samples, count)
    assert sorted(sum(found, [])) == (sorted(2 * list(range(count))) if count >= 3 else [])


def leave_loops(rank, size, loader):
    """A loop that is left, and one that begins while another one is still held."""
    model, optimizer, job = start(Numbered(200), policy=Wanders(), window=2, loader=loader)
    read, held = [], []
    while job.epoch == 0:
        held.append(job.batches(0))
        for number, (inputs, numbers) in enumerate(held[-1]):
            step(model, optimizer, inputs * 0, numbers)
            read += numbers.tolist()
            if number == 4:
                break
        held = held[-2:]
    return read


@pytest.mark.parametrize("loader", [{}, {"num_workers": 1, "persistent_workers": True}])
def test_a_loop_that_is_left_goes_on_where_it_was(loader):
    found = run_ranks(2, leave_loops, loader)
    assert sorted(sum(found, [])) == list(range(200))
