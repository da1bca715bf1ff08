"""What users' loops do besides: schedulers, scaling, unused parameters, dtypes, losses."""
import contextlib
import math

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import dynamix.torch
from ranks import network, run_ranks, samples, weights
from test_job import start, step


class Grows:
    """Twice the batches of the start."""

    def decide(self, round, states):
        return [2 * entry.start_batch for entry in round.entries]


def follow_rates(rank, size, rule):
    """Rates during the steps and between them, with two groups and a scheduler."""
    model = DistributedDataParallel(network())
    first, last = list(model.parameters())[:2], list(model.parameters())[2:]
    optimizer = torch.optim.SGD([{"params": first, "lr": 0.4}, {"params": last, "lr": 0.1}], lr=1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    job = dynamix.torch.adapt(model, optimizer, samples(), 4, policy=Grows(), rule=rule, window=2,
                              guard=False, monitor="none", max_batch=64)
    later = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    during = []
    inner = type(optimizer).step
    seen = []
    for inputs, targets in job.batches(0):
        before = [p.detach().clone() for p in model.parameters()]
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        moved = [((b - p.detach()) / p.grad).nanmedian().item() for b, p in zip(before, model.parameters())]
        during.append((job.batch_sizes, round(moved[0], 4), round(moved[2], 4)))
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.zero_grad()
        if len(during) == 8:
            break
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.05]
    assert all(rates == [0.4, 0.1] for rates in seen), "the user sees his own rates"
    return during


@pytest.mark.parametrize("rule,factor", [("linear", 2.0), ("sqrt", math.sqrt(2)), ("none", 1.0)])
def test_the_rule_scales_every_group_during_a_step_only(rule, factor):
    during = run_ranks(2, follow_rates, rule)[0]
    assert during[0] == ((4, 4), 0.4, 0.1)
    assert during[-1][0] == (8, 8)
    assert during[-1][1:] == (pytest.approx(0.4 * factor, rel=1e-3),
                              pytest.approx(0.1 * factor, rel=1e-3))


class Scale:
    """GradScaler's part that a CPU can run."""

    def __init__(self, scale):
        self.scale = scale

    def get_scale(self):
        return self.scale


def measure_noise(rank, size, scale):
    model, optimizer, job = start(samples(960), 16, rate=0.0, policy="static", window=5,
                                  scaler=Scale(scale))
    for epoch in range(2):
        for inputs, targets in job.batches(epoch):
            loss = nn.functional.cross_entropy(model(inputs), targets)
            (loss * scale).backward()
            for parameter in model.parameters():
                parameter.grad /= scale
            optimizer.step()
            optimizer.zero_grad()
    return job.noise_scale


def true_noise():
    """tr(S) / |G|^2 from every sample's gradient."""
    model, data = network(), samples(960)
    gradients = []
    for index in range(len(data)):
        model.zero_grad()
        inputs, target = data[index]
        nn.functional.cross_entropy(model(inputs[None]), target[None]).backward()
        gradients.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    gradients = torch.stack(gradients)
    return (gradients.var(0).sum() / gradients.mean(0).square().sum()).item()


def test_the_noise_scale_is_that_of_the_samples_whatever_the_loss_is_scaled_by():
    plain = run_ranks(2, measure_noise, 1.0)
    assert plain[0] == plain[1]
    assert plain[0] == pytest.approx(true_noise(), rel=0.4)
    assert run_ranks(2, measure_noise, 1024.0)[0] == pytest.approx(plain[0], rel=1e-3)


class Branches(nn.Module):
    """Uses one of two layers, of two dtypes; returns its loss as Hugging Face's models do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.one, self.other = nn.Linear(6, 3), nn.Linear(6, 3)
        self.wide = nn.Linear(3, 3).double()

    def forward(self, inputs, targets, which):
        scores = (self.one if which else self.other)(inputs)
        return {"loss": nn.functional.cross_entropy(self.wide(scores.double()), targets)}


def train_branches(rank, size):
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    job = dynamix.torch.adapt(model, optimizer, samples(480), 8, policy=Grows(), window=3,
                              guard=False, monitor="none")
    losses = []
    for number, (inputs, targets) in enumerate(job.batches(0)):
        losses.append(model(inputs, targets, number % 2)["loss"])
        losses[-1].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert job.batch_sizes == (16, 16)
    return weights(model.double()), [loss.item() for loss in losses]


def test_unused_parameters_two_dtypes_and_a_model_that_returns_its_loss():
    found = run_ranks(2, train_branches)
    assert torch.equal(found[0][0], found[1][0])
    assert sum(found[0][1][-4:]) < sum(found[0][1][:4])


class Fails:
    def decide(self, round, states):
        raise KeyError("oh no")


def train_with_a_failing_policy(rank, size):
    model, optimizer, job = start(samples(), 8, policy=Fails(), window=2)
    for inputs, targets in job.batches(0):
        step(model, optimizer, inputs, targets)
    return job.samples_seen, job.batch_sizes


def test_a_policy_that_fails_costs_its_advice_and_nothing_else():
    assert run_ranks(2, train_with_a_failing_policy)[0] == (240, (8, 8))


def drop_samples(items):
    """A collate function that leaves out every sample whose first number is negative."""
    kept = [item for item in items if item[0][0] >= 0] or items[:1]
    return {"inputs": torch.stack([item[0] for item in kept]),
            "targets": torch.stack([item[1] for item in kept])}


def weigh_by_what_is_there(rank, size):
    model, optimizer, job = start(samples(64), 25, policy="static", rate=0.0,
                                  loader={"collate_fn": drop_samples})
    for batch in job.batches(0):
        loss = nn.functional.cross_entropy(model(batch["inputs"]), batch["targets"])
        loss.backward()
        return batch, [p.grad.clone() for p in model.parameters()]


def test_weights_are_the_samples_that_the_collate_function_left():
    found = run_ranks(2, weigh_by_what_is_there)
    inputs = torch.cat([batch["inputs"] for batch, _ in found])
    targets = torch.cat([batch["targets"] for batch, _ in found])
    assert len(found[0][0]["targets"]) != len(found[1][0]["targets"])
    model = network()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    for own, expected in zip(found[0][1], model.parameters()):
        torch.testing.assert_close(own, expected.grad)


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.norm(inputs))


def average_statistics(rank, size):
    model, optimizer, job = start(samples(), 8 + 16 * rank, model=Normalized(), policy="static",
                                  ddp={"broadcast_buffers": False})
    model.module.norm.running_mean.fill_(rank + 1.0)
    job.average_buffers()
    return model.module.norm.running_mean[0].item()


def test_statistics_of_batch_norm_are_averaged_by_batch():
    assert run_ranks(2, average_statistics) == [1.75, 1.75]  # of 1 and 2, by 8 and 24


def follow_progress(rank, size, clock):
    """Twice the batch of the start, under rule sqrt: by steps, 16 samples count as 8 times the root of 2.
    The last batch of an epoch is a part of one."""
    options = {"policy": Grows(), "rule": "sqrt", "clock": clock, "epochs": 2, "window": 2}
    model, optimizer, job = start(samples(100), 4, **options)
    seen, restored = [], []
    for inputs, targets in job.batches(0):
        step(model, optimizer, inputs, targets)
        seen.append((job.samples_seen, sum(job.batch_sizes), job.progress))
        again = start(samples(100), 4, **options)[2]
        again.load_state_dict(job.state_dict())
        restored.append(again.progress)
    return seen, restored


@pytest.mark.parametrize("clock", ["samples", "steps"])
def test_progress_follows_the_schedules_clock_also_over_a_restart(clock):
    seen, restored = run_ranks(2, follow_progress, clock)[0]
    assert seen[0][1] == 8 and seen[-1][1] == 16, "the sizes never changed"
    before, position = 0, 0.0
    for samples_seen, batch, progress in seen:
        taken = samples_seen - before
        position += taken if clock == "samples" else taken * 8 * math.sqrt(batch / 8) / batch
        before = samples_seen
        assert progress == pytest.approx(position / 200)
    assert restored == pytest.approx([progress for _, _, progress in seen])


def end_by_steps(rank, size):
    """At the base batch both clocks say the same, whatever an epoch leaves over or is skipped."""
    found = []
    for clock in ("samples", "steps"):
        model, optimizer, job = start(samples(100), 16, policy="static", clock=clock, epochs=4,
                                      loader={"drop_last": True})
        for epoch in (0, 1, 3):
            for inputs, targets in job.batches(epoch):
                step(model, optimizer, inputs, targets)
        found.append(job.progress)
    return found


def test_at_the_base_batch_both_clocks_are_the_same():
    by_samples, by_steps = run_ranks(2, end_by_steps)[0]
    assert by_samples == by_steps == pytest.approx(396 / 400)


class Keeps:
    """Holds, and keeps what the job says about itself."""

    def __init__(self):
        self.seen = []

    def decide(self, round, states):
        self.seen.append((round.base_batch, round.entries[0].bounds.min, round.entries[0].bounds.max))
        return round.batches


def name_a_base(rank, size, accumulate):
    """Rates of a job of 2 x 8 samples whose rate belongs to 4 of them, and of one that goes on with it."""
    policy = Keeps()
    options = {"policy": policy, "rule": "sqrt", "clock": "steps", "epochs": 4, "window": 2, "base_batch": 4}
    model, optimizer, job = start(samples(96), 8, **options)
    for number, (inputs, targets) in enumerate(job.batches(0), 1):
        with contextlib.nullcontext() if number % accumulate == 0 else model.no_sync():
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        if number % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    again = start(samples(96), 8, **{**options, "base_batch": None})[2]
    again.load_state_dict(job.state_dict())
    next(iter(again.batches(1)))
    return job.learning_rate_factor, again.learning_rate_factor, job.progress, policy.seen


def test_a_base_batch_that_is_named_is_what_rates_and_bounds_are_relative_to():
    factor, again, progress, seen = run_ranks(2, name_a_base, 1)[0]
    assert factor == again == pytest.approx(2)  # sqrt(16 / 4)
    assert progress == pytest.approx(6 * 4 * 2 / (4 * 96))  # six steps of 4 samples x the factor
    assert seen and set(seen) == {(4.0, 1, 64)}  # an eighth of a share of 2, eight times 8


def open_job(rank, size, policy):
    job = start(samples(96), 8, policy=policy, rule="sqrt", base_batch=4)[2]
    next(iter(job.batches(0)))
    return job.batch_sizes, job.summary()["start_batch_sizes"], job.learning_rate_factor


@pytest.mark.parametrize("policy, opened", [("base", 2), ("default", 2), ("static", 8), ("balanced", 8)])
def test_a_job_opens_where_its_policy_says(policy, opened):
    for batches, started, factor in run_ranks(2, open_job, policy):
        assert batches == (opened, opened) and started == [8, 8]
        assert factor == pytest.approx(math.sqrt(opened / 2))


def open_jobs(rank, size):
    """The first batches of jobs that must not begin elsewhere than they can."""
    cases = ({"batch_size": (4, 256)[rank]},                                             # no base: the start
             {"batch_size": (8, 64)[rank], "max_batch": (8, 512)[rank]},
             {"batch_size": 10, "granularity": 4},                                       # legal or not
             {"batch_size": 8, "base_batch": 64},                                        # never upwards
             {"batch_size": 64, "base_batch": 12, "granularity": (1, 8)[rank], "min_batch": (1, 8)[rank]},
             {"batch_size": 64, "base_batch": 16, "min_batch": (1, 32)[rank]})
    return [start(samples(600), policy="base", **case)[2].batch_sizes for case in cases]


def test_a_job_opens_inside_each_ranks_own_bounds_and_never_above_its_start():
    assert run_ranks(2, open_jobs)[1] == [(4, 256), (8, 64), (10, 10), (8, 8), (4, 8), (1, 32)]


def go_on(rank, size, base_batch):
    options = {"policy": "static", "window": 2}
    state = start(samples(600), 64, base_batch=8, **options)[2].state_dict()
    job = start(samples(600), 64, base_batch=base_batch, **options)[2]
    if base_batch is not None:
        with pytest.raises(dynamix.torch.InputError, match="base_batch = 16 is not allowed: expected 8"):
            job.load_state_dict(state)
        return None
    before = job._bounds.min
    job.load_state_dict(state)
    return before, job._bounds.min


def test_a_job_that_goes_on_has_the_bounds_of_its_base_batch():
    assert run_ranks(2, go_on, None)[0] == (8, 1)
    run_ranks(2, go_on, 16)


def test_a_named_base_batch_is_of_an_optimizer_step():
    factor, again, _, _ = run_ranks(2, name_a_base, 2)[0]
    assert factor == again == pytest.approx(math.sqrt(32 / 4))
