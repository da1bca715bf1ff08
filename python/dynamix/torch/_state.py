"""What a job's state_dict holds, checked field by field: it may come from another job or a damaged
file, and what is wrong with it should be said before training goes on."""
import math
from collections.abc import Mapping

import torch

from dynamix import _check, _core

VERSION = 5
_HIGH = 1 << 53
_WHOLE = {"samples": 1, "seed": 0, "cursor": 0, "base_batch": 1, "named_base": 0, "period": 1, "iterations": 0,
          "in_window": 0, "windows": 0, "asking": 0}  # and the least value
_NUMBERS = ("base_rate", "noise", "position")
_PER_RANK = ("batches", "start_batches")


def read(state):
    """The state as a dictionary of Python's own types."""
    if isinstance(state, Mapping) and state.get("version") == 3:  # schedules knew no clock but samples
        state = {**state, "version": 4, "position": state.get("cursor")}
    if isinstance(state, Mapping) and state.get("version") == 4:  # nobody named a base batch
        state = {**state, "version": VERSION, "named_base": 0}
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
        raise _check.refused("version", found, f"a state_dict of version {VERSION}")
    fields = (*_WHOLE, *_NUMBERS, *_PER_RANK, "noise_scale", "decided", "memory")
    missing = [field for field in fields if field not in state]
    if missing:
        raise _check.refused("state_dict", f"without {', '.join(missing)}", "what Job.state_dict() returned")
    found = {field: _check.whole(field, state[field], low, _HIGH) for field, low in _WHOLE.items()}
    found.update((field, _check.number(field, state[field])) for field in _NUMBERS)
    if not 0 <= found["position"] < math.inf:
        raise _check.refused("position", found["position"], "a number of samples")
    found.update((field, _sizes(field, state[field])) for field in _PER_RANK)
    if len(found["start_batches"]) != len(found["batches"]):
        raise _check.refused("start_batches", state["start_batches"],
                             f"{len(found['batches'])} sizes, as many as batches has")
    found["decided"] = _sizes("decided", state["decided"]) if _list("decided", state["decided"]) else ()
    if len(found["decided"]) not in (0, len(found["batches"])):
        raise _check.refused("decided", state["decided"], "nothing, or a size per rank")
    found["noise_scale"] = [_check.number("noise_scale", value)
                            for value in _list("noise_scale", state["noise_scale"])]
    if len(found["noise_scale"]) != len(_core.NoiseScale().state()):
        raise _check.refused("noise_scale", state["noise_scale"], "what Job.state_dict() returned")
    memory = _check.of_type("memory", state["memory"], (torch.Tensor,), "a tensor")
    if memory.dim() != 1 or memory.dtype != torch.float64:
        raise _check.refused("memory", f"{memory.dtype} of shape {tuple(memory.shape)}", "what Job.state_dict() returned")
    return {**found, "memory": memory}


def _list(field, values):
    return _check.of_type(field, values, (list, tuple), "a list")


def _sizes(field, values):
    sizes = tuple(_check.whole(field, value, 1, 1 << 31) for value in _list(field, values))
    if not sizes:
        raise _check.refused(field, values, "one size per rank")
    return sizes
