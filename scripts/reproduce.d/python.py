"""What a user of PyTorch gets: plain DistributedDataParallel beside the same script with `adapt`, live."""
import json

import runs
from document import Goal, Part
from figures import chart, geometric, prose, row_of, seconds, star, table
from steps import Step

TITLE = "Python"
CLAIM = ("A plain DistributedDataParallel script (LeNet on Fashion-MNIST, 64 samples a rank, a cosine over 7 epochs) beside "
         "the same script with `dynamix.torch.adapt`, live on the demo's four emulated workers of speed 4 : 2 : 1 : 1, the "
         "fastest of which another job takes over for 12 seconds.")
BEFORE = "A figure of before is in [history.md](history.md#python-live)."
PARTIAL = True
DATA = ["fashion_mnist"]

SCRIPTS = {"plain": ("plain DDP", []), "balanced": ("`adapt`, `balanced`", ["--adapt", "--policy", "balanced"]),
           "default": ("`adapt`, `default`", ["--adapt", "--policy", "default"])}
SEEDS = 3


def steps(place):
    seeds = range(1, 2 if place.quick else SEEDS + 1)
    names = ["plain", "default"] if place.quick else SCRIPTS
    return [step(place, name, seed) for seed in seeds for name in names]


def step(place, name, seed):
    folder = place.path(f"{name}-{seed}")
    script = ["/usr/bin/python3", "examples/python/emulated_cluster.py", *SCRIPTS[name][1], "--seed", seed, "--run", folder]
    script += ["--samples", 8000, "--epochs", 2] if place.quick else []
    return Step(f"{name}-{seed}",
                ["env", "PYTHONPATH=build/release/python", "dynamix", "launch", "--cluster", "live/demo", "--workload",
                 "demo/lenet_fashion", "--no-prefix", "--", *script], 1.5, alone=True,
                collect=lambda: kept(json.loads((place.root / folder / "summary.json").read_text()), name, seed))


def kept(summary, name, seed):
    return {**runs.condense({"runs": [{"summary": summary, "policy": name, "seed": seed}]})[0],
            "wait": round(summary["mean_wait_share"], 3)}


def condense(outputs):
    return outputs


def part(found):
    rows_of = list(found.values())
    names = [name for name in SCRIPTS if any(run["policy"] == name for run in rows_of)]
    paired = {run["seed"] for run in rows_of if run["policy"] == "plain"} & {run["seed"] for run in rows_of
                                                                             if run["policy"] == "default"}
    if not paired:
        return Part([], prose("Not run with and without `adapt`."))
    own = runs.over(rows_of, "default", "plain")
    missed = sum(not run["reached"] for run in rows_of if run["policy"] == "default" and run["seed"] in paired)
    goals = [Goal("less time than the plain script", f"{own}, {missed} of {len(own.ratios)} targets missed",
                  own.mean < 0.995 and not missed)]
    seeds = sorted({run["seed"] for run in rows_of})
    table_rows = []
    for name in names:
        some = [run for run in rows_of if run["policy"] == name]
        by_seed = {seed: [run for run in some if run["seed"] == seed] for seed in seeds}
        table_rows.append([SCRIPTS[name][0], *(seconds(one) if one else "-" for one in by_seed.values()),
                           seconds(some), "1" if name == "plain" else f"{runs.over(rows_of, name, 'plain')}{star(some)}",
                           f"{geometric(run['iteration_ms'] for run in some):.1f}",
                           ",".join(map(str, some[0]["last_batches"]))])
    text = (prose("Seconds to accuracy 0.88 on all 10,000 held-out images; a star: missed, which counts with the time of all 7 "
                  "epochs. Over the plain script's with 95 % intervals over seeds (Student's t). The order of samples is "
                  "another one with `adapt`, so a seed is a pair in its first weights only.") + "\n\n" +
            table(["script", *(f"seed {seed}" for seed in seeds), "geometric mean", "over plain", "iteration, ms",
                   "batches at the end, first seed"], table_rows))
    charts = {"python": chart("Time over plain DDP's, a dot per seed", "faster than plain DDP",
                              [row_of(name, runs.over(rows_of, name, "plain"), color)
                               for color, name in enumerate(names) if name != "plain"])}
    return Part(goals, text, charts, f"`adapt` takes {own} of the plain script's time" +
                (f"; {missed} of {len(own.ratios)} targets are missed." if missed else "."))
