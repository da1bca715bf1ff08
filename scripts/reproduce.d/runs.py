"""What `dynamix compare` leaves: times per seed, curves, and the reasons of decisions."""
import json
import re

from figures import Ratio


def condense(comparison):
    """Per policy and seed: time, whether the target was reached, accuracy, samples, milliseconds of an iteration, overhead."""
    kept = []
    for run in comparison["runs"]:
        summary = run["summary"]
        kept.append({"policy": run["policy"], "seed": run["seed"], "reached": summary["reached"],
                     "time_to_target_s": round(summary["time_to_target_s"], 3), "accuracy": round(summary["accuracy"], 4),
                     "samples": round(summary["samples"]), "iteration_ms": round(summary["iteration_ms"], 3),
                     "overhead_share": summary.get("overhead_share"), "pace_ratio": summary.get("pace_ratio"),
                     "last_batches": summary["last_batches"]})
    return kept


def over(runs, policy, baseline, field="time_to_target_s"):
    """One policy over another, seed by seed."""
    base = {run["seed"]: run[field] for run in runs if run["policy"] == baseline}
    own = [run for run in runs if run["policy"] == policy and run["seed"] in base]
    return Ratio([run[field] / base[run["seed"]] for run in own], [f"seed {run['seed']}" for run in own])


def folder_of(policy, seed):
    """As `dynamix compare` names it."""
    return f"{policy.replace(':', '-')}-{seed}"


def curve(folder):
    """[seconds, samples, held-out accuracy] whenever the accuracy is another one."""
    points, samples = [], 0
    for line in (folder / "rounds.jsonl").read_text().splitlines():
        told = json.loads(line)
        if "accuracy" not in told:
            continue
        samples += samples_of(told)
        if told["accuracy"] is not None and (not points or told["accuracy"] != points[-1][2]):
            points.append([round(told["seconds"], 2), round(samples), round(told["accuracy"], 4)])
    return points


def samples_of(told):
    iterations = max((one.get("iterations") or 0 for one in told["reports"] if one), default=0)
    return iterations * sum(told["batches"])


def page_data(report):
    """What a page of runs draws."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', report.read_text(), re.S).group(1))


PARTS = ("compute", "exchange", "rest", "iteration")


def iteration_parts(folder, first=5):
    """Means over windows, in ms: the slowest worker's compute, the exchange after it, what is neither, and all."""
    sums, windows = dict.fromkeys(PARTS, 0.0), 0
    for line in (folder / "rounds.jsonl").read_text().splitlines():
        told = json.loads(line)
        reports = [one for one in told.get("reports", []) if one]
        if not reports or told["round"] < first:
            continue
        compute = max(one["compute_ms"] for one in reports)
        exchange = sum(one["communication_ms"] for one in reports) / len(reports)
        whole = max(one["iteration_ms"] for one in reports)
        windows += 1
        for what, value in zip(PARTS, (compute, exchange, whole - compute - exchange, whole)):
            sums[what] += value
    return {what: round(total / windows, 2) for what, total in sums.items()}
