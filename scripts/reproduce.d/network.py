"""Four networks that differ in nothing else: live with 4 workers, on the modelled clock with 16."""
import json

import runs
from document import Goal, Part
from figures import chart, code, geometric, list_of, prose, row_of, seconds, sentence, star, table
from steps import Step

TITLE = "Network"
CLAIM = ("One job on four networks: full bandwidth, a tenth of it, 1 % loss, and one that changes. Live on the testbed with "
         "4 workers, real SGD on the modelled clock with 16; and which network feature changes which decision.")
DATA = ["fashion_mnist"]
PARTIAL = True

NETWORKS = {"full": "full", "tenth": "a tenth", "lossy": "1 % loss", "changing": "changing"}
LIVE, VIRTUAL = "static,composite,default", "static,balanced,goodput,composite,default"
# Why a slow network is lost: the same with other targets in mind, and with the schedule by steps.
HORIZONS = "static,composite,composite:horizon=0.2,composite:horizon=0.1"
STEPS = ("tenth", "lossy")
SEEDS = 3
PLANNED = 400_000  # samples of workloads/demo/lenet_fashion.toml
# Features of the family network, and those of time that the network moves too (docs/metrics.md).
FEATURES = ("communication_share", "retransmission", "rtt_inflation", "delivery_ratio", "network_tier", "time_at_twice",
            "time_at_half",
            "iteration_growth")


def steps(place):
    made = []
    for backend in ("virtual",) if place.quick else ("live", "virtual"):  # live ones need the machine alone, virtual ones a core
        for network in ["full"] if place.quick else NETWORKS:
            policies = "static,default" if place.quick else LIVE if backend == "live" else VIRTUAL
            made.append(step(place, backend, network, backend, policies))
    if not place.quick:
        made.append(step(place, "horizon", "tenth", "virtual", HORIZONS))
        made += [step(place, "steps", network, "virtual", "static,composite,default", "--clock", "steps") for network in STEPS]
    return made


def step(place, name, network, backend, policies, *flags):
    folder = place.path(f"{name}-{network}")
    command = ["dynamix", "compare", "--backend", backend, "--workload", "demo/lenet_fashion", "--cluster", f"network/{network}",
               "--target", "0.86", "--policies", policies, "--run", folder]
    command += [*(["--evaluate-every", 2] if backend == "live" else ["--workers", 16]), "--seeds", 1 if place.quick else SEEDS]
    return Step(f"{name}-{network}", [*command, *flags, "--json"], 7.5 if backend == "live" else 3.5, alone=backend == "live",
                collect=lambda: collect(place.root / folder))


def collect(folder):
    """The runs' figures, and per run of `default` what its features did to the global batch."""
    kept = runs.condense(json.loads((folder / "comparison.json").read_text()))
    return {"runs": kept, "influences": influences(runs.page_data(folder / "report.html"))}


def influences(page):
    """Of `default`: the mean of the batch its actions are named after; per feature how often it was among the strongest
    reasons, and its mean influence then (powers of two on the global batch)."""
    sums, soonest, decisions = {}, [], 0
    for run in page["runs"]:
        if run["config"]["policy"] != "default":
            continue
        for point in run["points"]:
            decisions += 1
            for reason in point.get("why") or []:
                if reason.get("influence") is not None:
                    sums.setdefault(reason["name"], []).append(reason["influence"])
                elif reason["name"] == "soonest batch" and reason["value"]:
                    soonest.append(reason["value"])
    return {"decisions": decisions, "soonest": round(geometric(soonest)) if soonest else None,
            "features": {name: [len(some), round(sum(some) / len(some), 3)] for name, some in sums.items()}}


def condense(outputs):
    return outputs


def part(found):
    goals, texts, charts = [], [], {}
    for backend, setting in (("live", "live, 4 workers"), ("virtual", "real SGD on the modelled clock, 16 workers")):
        names = [name for name in found if name.startswith(backend)]
        if not names:
            continue
        seeds = sorted({run["seed"] for run in found[names[0]]["runs"]})
        what = f"{setting}, {len(seeds)} seeds" if len(seeds) > 1 else f"{setting}, one seed"
        own = {name: runs.over(found[name]["runs"], "default", "static") for name in names}
        goals.append(Goal(f"less time than static on every network, {what}",
                          ", ".join(f"{label(name)} {ratio.mean:.2f}{missed(found[name])}" for name, ratio in own.items()),
                          all(one.mean < 0.995 and not missed(found[name]) for name, one in own.items())))
        policies = list(dict.fromkeys(run["policy"] for run in found[names[0]]["runs"]))
        rows = [[label(name), *(cell(found[name]["runs"], policy) for policy in policies)] for name in names]
        ends = [[label(name), *(str(last_global(found[name]["runs"], policy)) for policy in policies)] for name in names]
        header = ["network", *map(code, policies)]
        texts.append(f"### {sentence(what)}\n\n" + prose(
            "Seconds to accuracy 0.86, geometric means over seeds, and over static's with 95 % intervals (Student's t) where "
            "there are several; a star: a target was missed.") + "\n\n" + table(header, rows) +
            "\n\nGlobal batch at the end, first seed:\n\n" + table(header, ends))
        charts[f"network_{backend}"] = chart(f"Time over static's by network, {what}", "faster than static",
                                             [row_of(f"{policy}, {label(name)}",
                                                     runs.over(found[name]["runs"], policy, "static"), color)
                                              for name in names for color, policy in enumerate(policies) if policy != "static"])
    texts += why_slow(found)
    decided = {name: one for name, one in found.items() if name.startswith(("live", "virtual"))}
    if decided:
        texts.append(reasons(decided))
    return Part(goals, "\n\n".join(texts), charts, " ".join(f"{sentence(goal.text.split(', ', 1)[1])}, time over static's: "
                                                          f"{goal.result}." for goal in goals))


def why_slow(found):
    """What the formula's distance of a target, and the schedule's clock, do where an exchange takes most of the time."""
    texts = []
    if "horizon-tenth" in found:
        own = found["horizon-tenth"]["runs"]
        used = [run["samples"] / PLANNED for run in own if run["policy"] == "composite"]
        policies = list(dict.fromkeys(run["policy"] for run in own))
        rows = [[name, *(value(policy) for policy in policies)] for name, value in (
            ("seconds to target", lambda policy: cell(own, policy)),
            ("iteration, ms", lambda policy: f"{geometric(run['iteration_ms'] for run in own if run['policy'] == policy):.0f}"),
            ("global batch at the end, first seed", lambda policy: str(last_global(own, policy))))]
        sooner = runs.over(own, "composite:horizon=0.2", "composite").mean < 1
        near = all(run["reached"] for run in own if run["policy"] == "composite") and max(used) < 0.5
        larger = last_global(own, "composite:horizon=0.2") > last_global(own, "composite")
        longer = mean_of(own, "composite:horizon=0.2", "iteration_ms") / mean_of(own, "composite", "iteration_ms")
        why = ("So it saves samples that the job does not need, although on a slow network a larger batch hardly takes longer."
               if near and sooner and larger and longer < 1.15 else "")
        texts += ["### How far a target is thought to be", prose(
            "The time to go ([rules.md](rules.md#composite)) takes the target to be as far away as the base batch gets in half of "
            f"what is left of the schedule. `composite` used {100 * min(used):.0f} to {100 * max(used):.0f} % of the schedule's "
            f"samples until it had this one or was over. {why} A tenth of the bandwidth, 16 workers, with the target thought to "
            "be nearer (`horizon`):"),
            table(["", *map(code, policies)], rows), prose(
                "A nearer target for all jobs misses targets elsewhere, and guessing from the curve how near it is makes no "
                "validation job faster by pace ([learning.md](learning.md#a-nearer-target)).")]
    names = [name for name in found if name.startswith("steps-") and name.replace("steps", "virtual") in found]
    if names:
        by_samples = {name: found[name.replace("steps", "virtual")]["runs"] for name in names}
        rows = [[label(name), *(f"{over_samples(found[name]['runs'], policy, by_samples[name]):.2f}"
                                for policy in ("static", "composite", "default")),
                 f"{runs.over(by_samples[name], 'default', 'static').mean:.2f}"] for name in names]
        texts += [prose("A schedule by steps is not used up by larger batches (`--clock steps`, "
                        "[training.md](training.md)). Time over static's by samples, 16 workers:"),
                  table(["network", "`static`, by steps", "`composite`, by steps", "`default`, by steps", "`default`, by samples"],
                        rows)]
    return texts


def over_samples(some, policy, base):
    """Time of a policy in `some` over static's in `base`, seed by seed."""
    static = {run["seed"]: run["time_to_target_s"] for run in base if run["policy"] == "static"}
    return geometric(run["time_to_target_s"] / static[run["seed"]] for run in some if run["policy"] == policy)


def missed(one):
    return star([run for run in one["runs"] if run["policy"] == "default"])


def mean_of(some, policy, field):
    return geometric(run[field] for run in some if run["policy"] == policy)


def label(name):
    return NETWORKS[name.split("-")[1]]


def cell(some, policy):
    own = [run for run in some if run["policy"] == policy]
    return seconds(own) + ("" if policy == "static" else f", {runs.over(some, policy, 'static')}")


def last_global(some, policy):
    return sum(next(run for run in some if run["policy"] == policy)["last_batches"])


def reasons(found):
    """Which features moved the batch, by network."""
    counts = {}
    for one in found.values():
        for feature, (times, _) in one["influences"]["features"].items():
            counts[base(feature)] = counts.get(base(feature), 0) + times
    strongest = sorted(counts, key=lambda feature: -counts[feature])[:4]
    used = strongest + [feature for feature in FEATURES if feature in counts and feature not in strongest]
    rows = []
    for step, one in found.items():
        cells = []
        for feature in used:
            some = [value for name, value in one["influences"]["features"].items() if base(name) == feature]
            times, total = sum(value[0] for value in some), sum(value[0] * value[1] for value in some)
            cells.append(f"{total / times:+.2f} in {times}" if times else "-")
        rows.append([f"{step.split('-')[0]}, {label(step)}", one["influences"]["decisions"],
                     one["influences"]["soonest"] or "-", *cells])
    never = [code(feature) for feature in FEATURES if feature not in counts]
    return "\n\n".join([
        "### Which feature changes which decision",
        prose("The soonest batch is the one that the actions of `default` are named after; it is computed from measured "
              "times, the exchange among them, so a network acts through it first (mean over decisions). Beside it the "
              "features that moved the decision itself: how much each raised or lowered the global batch against its mean in "
              "training (powers of two: +1 doubles it), as the mean over the decisions in which it was among the strongest "
              "reasons, and in how many. The four that were most often, and all of the network and of times."),
        table(["backend, network", "decisions", "soonest batch", *map(code, used)], rows),
        prose(f"Of the features of the network and of times, never among the strongest reasons: {list_of(never)}.")])


def base(feature):
    return feature.split(".")[0]
