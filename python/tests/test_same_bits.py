"""With sizes that stay, a job's weights are those of the same script without DYNAMIX, to the bit."""
import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import dynamix
import dynamix.torch
from ranks import network, run_ranks, samples, weights


def train(rank, size, adapt, policy, ddp):
    torch.manual_seed(1)
    model = DistributedDataParallel(network(), **ddp)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    data = samples()
    if adapt:
        job = dynamix.torch.adapt(model, optimizer, data, batch_size=8, policy=policy, window=3,
                                  seed=4, min_batch=8, max_batch=8, monitor="none")
    else:
        sampler = dynamix.Sampler(len(data), 4)
    for epoch in range(2):
        if adapt:
            batches = job.batches(epoch)
        else:  # the same samples, by hand
            lists = []
            while sampler.epoch == epoch:
                lists.append(sampler.part([8] * size, rank))
                sampler.advance([8] * size)
            batches = torch.utils.data.DataLoader(data, batch_sampler=lists)
        for inputs, targets in batches:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if adapt:
                job.report(loss=loss)
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.025
    return weights(model)


# 3 ranks: one third is not a number that floats hold exactly.
@pytest.mark.parametrize("size,policy,ddp", [(2, "default", {}), (3, "static", {}),
                                             (2, "static", {"gradient_as_bucket_view": True, "static_graph": True})])
def test_constant_sizes_change_nothing(size, policy, ddp):
    plain = run_ranks(size, train, False, None, ddp)
    ours = run_ranks(size, train, True, policy, ddp)
    assert torch.equal(plain[0], ours[0])
