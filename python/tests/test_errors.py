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
    ({"loader": {"sampler": torch.utils.data.RandomSampler(range(4))}}, r"loader\['sampler'\] = RandomSampler"),
    ({"advisor": "127.0.0.1:9", "policy": "balanced"}, "policy = balanced is not allowed: expected none beside advisor"),
    ({"advisor": "127.0.0.1:9", "run": "runs/never"}, "run = runs/never is not allowed: expected none beside advisor"),
    ({"advisor": "localhost"}, "advisor = localhost"),
    ({"advisor": "localhost:x"}, "advisor = localhost:x"),
    ({"loader": 3}, "loader = 3"),
    ({"loader": {"in_order": False}}, "in_order"),
    ({"loader": {"num_workers": "x"}}, r"loader\['num_workers'\] = x"),
    ({"loader": {"bogus": 1}}, "loader: .*'bogus'"),
    ({"loader": {"prefetch_factor": 3}}, "loader: prefetch_factor"),
    ({"policy": "/nowhere/file.safetensors"}, "policy = /nowhere/file.safetensors"),
    ({"monitor": "xray"}, "monitor = xray"),
    ({"monitor": None}, "monitor = None"),
    ({"schedule": "sine"}, "schedule = sine"),
    ({"clock": "hours"}, "clock = hours"),
    ({"target": "high"}, "target = high"),
    ({"target": 7}, "target = 7"),
    ({"target": {"loss": 0}}, "target = {'loss': 0}"),
    ({"target": {"accuracy": 0.9, "loss": 1.0}}, "target = "),
    ({"window": 0}, "window = 0"),
    ({"seed": -1}, "seed = -1"),
    ({"epochs": 2.5}, "epochs = 2.5"),
    ({"base_batch": 0}, "base_batch = 0"),
    ({"base_batch": 64.5}, "base_batch = 64.5"),
    ({"scaler": 3}, "scaler = 3"),
    ({"count": 3}, "count = 3"),
    ({"run": 3}, "run = 3"),
    ({"run": "/dev/null/run"}, "run = /dev/null/run"),
]


class Stream(torch.utils.data.IterableDataset):
    def __len__(self):
        return 240


def refuse_options(rank, size):
    for options, sentence in BAD_OPTIONS:
        with pytest.raises(dynamix.InputError, match=sentence):
            start(samples(), 8, **options)
    for batch_size in ("64", 6.5, None, 0, -3):
        with pytest.raises(dynamix.InputError, match=f"batch_size = {batch_size} is not allowed"):
            start(samples(), batch_size)
    with pytest.raises(dynamix.InputError, match="dataset = list_iterator"):
        start(iter([]))
    with pytest.raises(dynamix.InputError, match="dataset = Stream"):
        start(Stream())
    with pytest.raises(dynamix.InputError, match="dataset = DataLoader .*loader.dataset"):
        start(torch.utils.data.DataLoader(samples()))
    model, optimizer, _ = start(samples())
    with pytest.raises(dynamix.InputError, match=r"epochs = None .*adapt\(epochs=...\)"):
        start(samples())[2].progress
    with pytest.raises(dynamix.InputError, match="adapt.. takes a model once"):
        dynamix.torch.adapt(model, optimizer, samples(), 8)
    with pytest.raises(dynamix.InputError, match="an optimizer of the model's parameters"):
        dynamix.torch.adapt(DistributedDataParallel(network()), optimizer, samples(), 8)
    with pytest.raises(dynamix.InputError, match="model = Sequential"):
        dynamix.torch.adapt(network(), None, samples(), 8)
    with pytest.raises(dynamix.InputError, match="model = sparse=True"):
        start(samples(), model=torch.nn.Embedding(4, 3, sparse=True))
    with pytest.raises(dynamix.InputError, match="optimizer = int"):
        dynamix.torch.adapt(DistributedDataParallel(network()), 3, samples(), 8)


def test_bad_options_are_refused_with_field_value_and_what_is_allowed():
    run_ranks(1, refuse_options)


def refuse_calls(rank, size, folder):
    model, optimizer, job = start(samples())
    for epoch in ("x", -1, 1.5):
        with pytest.raises(dynamix.InputError, match=f"epoch = {epoch}"):
            next(job.batches(epoch))
    for loss in ("low", torch.ones(3)):
        with pytest.raises(dynamix.InputError, match="loss = "):
            job.report(loss=loss)
    for state in (None, {}, 3, {"version": 99}):
        with pytest.raises(dynamix.InputError, match="version = "):
            job.load_state_dict(state)
    for count in (None, "x", 2.5, -1):
        model, optimizer, other = start(samples(), count=lambda batch, asked: count)
        with pytest.raises(dynamix.InputError, match=r"count\(\) = "):
            next(other.batches(0))
    _, _, recorded = start(samples(), run=str(folder / "run"))
    with pytest.raises(dynamix.InputError, match="accuracy = high"):
        recorded.evaluated(accuracy="high")


def test_bad_calls_of_a_job_are_refused(tmp_path):
    run_ranks(1, refuse_calls, tmp_path)


def refuse_states(rank, size):
    model, optimizer, job = start(samples(), window=2)
    train(model, optimizer, job, epochs=1)
    good = job.state_dict()
    for field in good:
        with pytest.raises(dynamix.InputError):
            job.load_state_dict({name: value for name, value in good.items() if name != field})
        with pytest.raises(dynamix.InputError):
            job.load_state_dict({**good, field: "x"})
    for garbage in ({"samples": 7}, {"batches": []}, {"batches": [-4]}, {"start_batches": [4, 4]}, {"cursor": -1},
                    {"period": 0}, {"noise_scale": [1.0]}, {"memory": torch.ones(3)},
                    {"position": -1.0}, {"position": float("nan")},
                    {"memory": torch.ones(3, dtype=torch.float64)}, {"memory": torch.ones(3, 2, dtype=torch.float64)}):
        with pytest.raises(dynamix.InputError):
            job.load_state_dict({**good, **garbage})
    older = {**good, "version": 4}
    del older["named_base"]
    job.load_state_dict(older)
    del older["position"]
    job.load_state_dict({**older, "version": 3})
    job.load_state_dict(good)
    assert train(model, optimizer, job, epochs=2) > 0


def train(model, optimizer, job, epochs):
    """Samples that were read."""
    before = job.samples_seen
    for epoch in range(job.epoch, epochs):
        for inputs, targets in job.batches(epoch):
            step(model, optimizer, inputs, targets)
    return job.samples_seen - before


def test_a_state_that_is_not_a_jobs_is_refused_and_harms_nothing():
    run_ranks(1, refuse_states)


def go_on_after_close(rank, size, options):
    model, optimizer, job = start(samples(), window=2, **options)
    assert train(model, optimizer, job, epochs=1) == 240
    job.close()
    assert train(model, optimizer, job, epochs=2) == 240
    job.close()


@pytest.mark.parametrize("advisor", [None, "127.0.0.1:1"])
def test_a_job_that_was_closed_trains_on(tmp_path, advisor):
    options = {"advisor": advisor} if advisor else {"run": str(tmp_path / "run")}
    run_ranks(1, go_on_after_close, options)


def collate_anything(rank, size):
    """Whatever the collate function makes, the samples are counted and the loop goes on."""
    images, labels = torch.utils.data.default_collate([samples()[i] for i in range(8)])
    for make in (lambda _: None, lambda rows: {"x": rows}, lambda rows: "text", lambda rows: iter(rows),
                 lambda rows: ({"x": [torch.utils.data.default_collate(rows)]},)):
        model, optimizer, job = start(samples(), loader={"collate_fn": make}, policy=Wanders(), window=2)
        for _ in job.batches(0):
            step(model, optimizer, images, labels)
        assert job.samples_seen == 240


def test_batches_may_be_anything():
    run_ranks(1, collate_anything)


class Says:
    def __init__(self, word):
        self.word = word

    def decide(self, round, states):
        return self.word


def hear_nonsense(rank, size):
    for word in (None, "x", 4, [], [8, 8, 8], [float("nan"), 8], [None, 8]):
        model, optimizer, job = start(samples(), policy=Says(word), window=3)
        train(model, optimizer, job, epochs=1)
        assert job.batch_sizes == (8, 8)


def test_a_policy_that_says_nonsense_changes_nothing():
    run_ranks(2, hear_nonsense)
    with pytest.raises(RuntimeError, match="a list of numbers, or Actions"):
        dynamix.Policy(Says("x")).decide([8, 8], compute_ms=1.0)


def interrupt(rank, size):
    """In mid-epoch, between backward and step; and a pass without gradients through the DDP model."""
    model, optimizer, job = start(Numbered(200), policy=Wanders(), window=2, loader={"num_workers": 1})
    read = []
    try:
        for number, (inputs, numbers) in enumerate(job.batches(0)):
            model(inputs * 0).sum().backward()
            read += numbers.tolist()
            if number == 5:
                raise KeyboardInterrupt
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                model(inputs * 0)
    except KeyboardInterrupt:
        pass
    for inputs, numbers in job.batches(0):
        step(model, optimizer, inputs * 0, numbers)
        read += numbers.tolist()
    return read


def test_a_loop_that_was_interrupted_goes_on():
    assert sorted(sum(run_ranks(2, interrupt), [])) == list(range(200))


def refuse_options_that_differ(rank, size):
    with pytest.raises(dynamix.InputError, match=r"dataset = \[240, 241\]"):
        start(samples(240 + rank))
    with pytest.raises(dynamix.InputError, match=r"window = \[3, 4\]"):
        start(samples(), window=3 + rank)
    with pytest.raises(dynamix.InputError, match=r"rule = \['none', 'sqrt'\]"):
        start(samples(), rule=("sqrt", "none")[rank])
    with pytest.raises(dynamix.InputError, match=r"clock = \['samples', 'steps'\]"):
        start(samples(), clock=("steps", "samples")[rank])
    with pytest.raises(dynamix.InputError, match=r"base_batch = \[0, 16\]"):
        start(samples(), base_batch=(None, 16)[rank])


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
