#!/usr/bin/python3
"""Computes again with PyTorch what torch_dump computed in C++, and compares.

loss    log-probabilities and values of a rollout, its advantages, and the loss of a minibatch with all its gradients (1e-5)
export  TorchScript: same argmax and logits within 1e-5 on 10,000 states per head; ONNX: the checker passes and an
        evaluation of the graph gives the same logits

usage: check_with_torch.py TORCH_DUMP loss|export
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

TYPES = {"F32": np.float32, "F64": np.float64, "U64": np.uint64}


def read(path):
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    metadata = header.pop("__metadata__")
    tensors = {name: np.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
               for name, entry in header.items()}
    return metadata, tensors


def near(what, got, want, tolerance=1e-5):
    error = np.max(np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64)), initial=0)
    print(f"{what}: largest difference {error:.2e}")
    if not error <= tolerance:
        sys.exit(f"{what} differs by {error}, allowed {tolerance}")


def parameters(tensors, prefix, shape):
    names = [f"{tower}.{layer}.{part}" for tower in ("policy", "value") for layer in range(len(shape["hidden"]) + 1)
             for part in ("weight", "bias")]
    return {name: torch.tensor(tensors[f"{prefix}.{name}"], dtype=torch.float64, requires_grad=True) for name in names}


def tower(weights, name, x):
    layers = sum(key.startswith(name) for key in weights) // 2
    for layer in range(layers):
        x = x @ weights[f"{name}.{layer}.weight"].T + weights[f"{name}.{layer}.bias"]
        x = torch.tanh(x) if layer + 1 < layers else x
    return x


def evaluate(weights, t, shape):
    logits = tower(weights, "policy", t["actor_rows"]).masked_fill(t["masks"] == 0, -1e8)
    log_probs, entropy = 0, 0
    for head, part in enumerate(torch.split(logits, shape["heads"], 1)):
        logs = torch.log_softmax(part, 1)
        log_probs = log_probs + logs.gather(1, t["actions"][:, head:head + 1])[:, 0]
        entropy = entropy - (logs.exp() * logs).sum(1)
    return log_probs, entropy, tower(weights, "value", t["critic_rows"])[:, 0]


def advantages(t, rows, lam):
    """By definition, forwards from every active step: the sum of later temporal differences, ended by an end."""
    steps = len(t["rewards"]) // rows
    at = lambda name: t[name].reshape(steps, rows)
    reward, value, discount, end = at("rewards"), at("values"), at("discounts"), at("ends")
    active, bootstrap, out = at("active"), at("bootstraps"), np.zeros((steps, rows))
    for row in range(rows):
        for start in range(steps):
            if not active[start, row]:
                continue
            weight, step, total = 1.0, start, 0.0
            while step < steps:
                # One transition: this active step and the inactive ones that follow it.
                delta, factor, ended = -value[step, row], 1.0, False
                while True:
                    delta += factor * reward[step, row]
                    factor *= discount[step, row]
                    if end[step, row]:
                        delta += factor * bootstrap[step, row] * (end[step, row] == 2)
                        ended = True
                        break
                    step += 1
                    if step == steps or active[step, row]:
                        delta += factor * (t["last_values"][row] if step == steps else value[step, row])
                        break
                total += weight * delta
                weight *= lam * factor
                if ended:
                    break
            out[start, row] = total
    return out.flatten()


def check_loss(folder):
    metadata, raw = read(folder / "loss.safetensors")
    shape = json.loads(metadata["before.shape"])
    rows, count = 30, len(raw["log_probs"])
    numbers = {k: v.astype(np.float64) for k, v in raw.items() if v.dtype != np.uint64}
    t = {"actor_rows": torch.tensor(numbers["actor_rows"]).reshape(count, -1),
         "critic_rows": torch.tensor(numbers["critic_rows"]).reshape(count, -1),
         "masks": torch.tensor(numbers["masks"]).reshape(count, -1),
         "actions": torch.tensor(numbers["actions"]).long().reshape(count, -1)}
    active = numbers["active"] > 0
    log_probs, _, values = evaluate(parameters(raw, "before", shape), t, shape)
    near("log-probabilities of the rollout", log_probs.detach()[active], numbers["log_probs"][active])
    near("values of the rollout", values.detach()[active], numbers["values"][active])
    a = advantages(numbers, rows, 0.9)
    near("advantages", a[active], numbers["advantages"][active])

    pick = torch.tensor(numbers["rows"]).long()
    weights = parameters(raw, "moved", shape)
    log_probs, entropy, values = (x[pick] for x in evaluate(weights, t, shape))
    a, old = torch.tensor(a)[pick], torch.tensor(numbers["values"])[pick]
    returns, log_ratio = a + old, log_probs - torch.tensor(numbers["log_probs"])[pick]
    a, ratio = (a - a.mean()) / (a.std() + 1e-8), log_ratio.exp()
    policy = torch.max(-a * ratio, -a * ratio.clamp(0.8, 1.2)).mean()
    clipped = old + (values - old).clamp(-0.2, 0.2)
    value = 0.5 * torch.max((values - returns) ** 2, (clipped - returns) ** 2).mean()
    total = policy - 0.02 * entropy.mean() + 0.5 * value
    total.backward()
    fraction = ((ratio - 1).abs() > 0.2).double().mean()
    assert 0.05 < fraction < 0.95, "the case must clip some rows and not all"
    parts = [total, policy, value, entropy.mean(), (ratio - 1 - log_ratio).mean(), fraction]
    near("loss parts", [float(x) for x in parts], numbers["parts"])
    near("gradients", torch.cat([w.grad.flatten() for w in weights.values()]), numbers["gradient"])


def run_onnx(model, inputs):
    """The few operators the export uses, in numpy."""
    import onnx.numpy_helper
    values = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer} | inputs
    operators = {
        "Cast": lambda a, to: a.astype({1: np.float32, 11: np.float64}[to]),
        "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Clip": np.clip, "IsNaN": np.isnan, "IsInf": np.isinf,
        "Or": np.logical_or, "Where": np.where, "Tanh": np.tanh, "Gemm": lambda x, w, b, transB: x @ w.T + b,
    }
    for node in model.graph.node:
        attributes = {a.name: a.i for a in node.attribute}
        with np.errstate(invalid="ignore"):
            values[node.output[0]] = operators[node.op_type](*(values[i] for i in node.input), **attributes)
    return {o.name: values[o.name] for o in model.graph.output}


def check_export(folder):
    import onnx
    _, raw = read(folder / "states.safetensors")
    states, logits, decisions = {}, {}, {}
    for head in ("local", "team"):
        states[head] = raw[f"{head}.states"].astype(np.uint32).view(np.float32).reshape(10000, -1)
        logits[head] = raw[f"{head}.logits"].reshape(10000, 5)
        decisions[head] = raw[f"{head}.decisions"].astype(np.int64)
    outputs = torch.jit.load(folder / "policy.pt")(*(torch.tensor(states[h]) for h in ("local", "team")))
    for head, output in zip(("local", "team"), outputs):
        near(f"TorchScript logits, {head}", output, logits[head])
        same = int((output.argmax(1).numpy() == decisions[head]).sum())
        print(f"TorchScript decisions, {head}: {same} of 10000 the same")
        if same != 10000:
            sys.exit(f"TorchScript decides otherwise in {10000 - same} of 10,000 states")
    near("TorchScript, team alone", torch.jit.load(folder / "team.pt")(torch.tensor(states["team"])), logits["team"])
    for name, heads in (("policy.onnx", ("local", "team")), ("team.onnx", ("team",))):
        model = onnx.load(str(folder / name))
        onnx.checker.check_model(model, full_check=True)
        for head, output in zip(heads, run_onnx(model, {h: states[h] for h in heads}).values()):
            near(f"{name} logits, {head}", output, logits[head])


def main():
    program, what = sys.argv[1:]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, what, folder], check=True)
        {"loss": check_loss, "export": check_export}[what](pathlib.Path(folder))


if __name__ == "__main__":
    main()
