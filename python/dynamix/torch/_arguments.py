"""What `adapt` was given: refused by name, or made into a part of the job."""
import os

import torch

from dynamix import Recorder, _check, _core


def require(model, optimizer, scaler, count, policy, advisor, run):
    expected = torch.nn.parallel.DistributedDataParallel
    if not isinstance(model, expected):
        raise _check.refused("model", type(model).__name__, expected.__name__)
    if any(getattr(module, "sparse", False) is True for module in model.modules()):
        raise _check.refused("model", "sparse=True", "layers whose gradients are dense")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise _check.refused("optimizer", type(optimizer).__name__, "a torch.optim.Optimizer")
    trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if trained.isdisjoint(id(p) for p in model.parameters()):
        raise _check.refused("optimizer", type(optimizer).__name__, "an optimizer of the model's parameters")
    if scaler is not None and not hasattr(scaler, "get_scale"):
        raise _check.refused("scaler", scaler, "a GradScaler, or anything with get_scale()")
    if count is not None and not callable(count):
        raise _check.refused("count", count, "a function (batch, asked) -> samples")
    if advisor is not None and policy != "default":
        raise _check.refused("policy", name_of(policy), "none beside advisor: the arbitrator has its own")
    if advisor is not None and run is not None:
        raise _check.refused("run", run, "none beside advisor: the arbitrator records (dynamix arbitrator --run)")


def name_of(policy):
    return policy if isinstance(policy, str) else type(policy).__name__


def counting(count):
    return lambda batch, asked: _check.whole("count()", count(batch, asked), 0, 1 << 31)


def make_monitor(best, model):
    if _check.text("monitor", best) == "none":
        return None
    device = next(model.parameters()).device
    index = device.index if device.type == "cuda" else -1
    monitor = _core.Monitor(best, index)
    if best == "ebpf" and monitor.tier == _core.NetworkTier.inet_diag:
        # inet_diag walks through all sockets of the machine, milliseconds in every window; those of
        # this process can be asked one by one.
        monitor = _core.Monitor("own_sockets", index)
    return monitor


def make_recorder(run, job, target):
    if isinstance(run, (str, os.PathLike)):
        return Recorder(run, name=job or "python", target=target)
    return _check.of_type("run", run, (Recorder, type(None)), "a folder or a Recorder")
