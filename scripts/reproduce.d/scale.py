"""More workers: real SGD up to 32, simulation up to 1,024."""
from document import Goal, Part
from figures import (Ratio, chart, code, geometric, list_of, paired, policies_of, prose, reached, result_of, row_of, seconds, sentence,
                     star, table)
from steps import Step

TITLE = "Scale"
CLAIM = ("The same job on more and more workers: time to target per policy, and how much of the ideal speed-up it keeps. "
         "Real SGD on a modelled clock with 4 to 32 workers, simulation with up to 1,024.")
BEFORE = "Figures of before are in [history.md](history.md#simulated-jobs-sim)."
PARTIAL = True
DATA = ["fashion_mnist"]

POLICIES = "static,balanced,goodput,composite,default"
REAL, SIMULATED = [4, 8, 16, 32], [8, 32, 128, 1024]
# Held-out quadratics: the only jobs of which a clairvoyant's time is known.
HINDSIGHT = [4, 8, 16, 32]
QUADRATICS = "held_out/quad_adam,held_out/quad_noisy,held_out/quad_scaled,held_out/quad_steep"
SEEDS = {"virtual": 3, "sim": 10}


def steps(place):
    real, simulated = ([], [8, 16]) if place.quick else (REAL, SIMULATED)
    seeds = {"sim": 1} if place.quick else SEEDS
    policies = "static,default" if place.quick else POLICIES
    made = []
    # The large ones first: they end last.
    for workers in reversed(simulated):
        made.append(Step(f"sim-{workers}",
                         ["dynamix", "evaluate", "--suite", "scale_128", "--workers", workers, "--seeds", seeds["sim"],
                                            "--policies", policies, "--no-static-sizes", "--no-bounds", "--threads", 1, "--json"],
                         0.02 + workers / 2000))
    for workers in [] if place.quick else HINDSIGHT:
        made.append(Step(f"hindsight-{workers}",
                         ["dynamix", "evaluate", "--suite", "held_out", "--workloads", QUADRATICS, "--workers", workers,
                          "--seeds", 1, "--policies", "static,composite,default", "--no-static-sizes", "--threads", 1, "--json"],
                         0.5))
    for workers in real:
        made.append(Step(f"virtual-{workers}",
                         ["dynamix", "evaluate", "--backend", "virtual", "--suite", "contended", "--workloads",
                                                "demo/lenet_fashion", "--workers", workers, "--seeds", seeds["virtual"],
                                                "--policies",
                                                policies, "--no-static-sizes", "--threads", 1, "--json"], 5))
    return made


def condense(outputs):
    return {step: times(output["results"]) if step.startswith("hindsight") else [result_of(one) for one in output["results"]]
            for step, output in outputs.items()}


def of_kind(found, kind):
    """By number of workers."""
    return {int(step.split("-")[1]): one for step, one in found.items() if step.startswith(kind)}


def times(results):
    """By policy, in the same order of jobs."""
    ordered = sorted(results, key=lambda one: (one["scenario"], one["workload"], one["seed"]))
    return {policy: [round(one["time_to_target_s"], 3) for one in ordered if one["policy"] == policy]
            for policy in policies_of(results)}


def sizes(results):
    return sorted({one["workers"] for one in results})


def of(results, policy, workers):
    return [one for one in results if one["policy"] == policy and one["workers"] == workers]


def share_of_ideal(results, policy, workers, weak):
    """Of the speed-up from the smallest cluster to this one. `weak`: the job grows with the cluster, so the ideal is the same
    time; otherwise the time falls as the workers grow."""
    least = sizes(results)[0]
    faster = geometric(one["time_to_target_s"] for one in of(results, policy, least)) / geometric(
        one["time_to_target_s"] for one in of(results, policy, workers))
    return faster if weak else faster * least / workers


def tables(results, weak):
    counts, policies = sizes(results), policies_of(results)
    header = ["workers", *map(code, policies)]
    times = [[f"{n:,}", *(seconds(of(results, policy, n)) for policy in policies)] for n in counts]
    ratios = [[f"{n:,}", *("1" if policy == "static" else str(ratio(results, policy, n)) for policy in policies)] for n in counts]
    shares = [[f"{n:,}", *(f"{100 * share_of_ideal(results, policy, n, weak):.0f} %" for policy in policies)] for n in counts[1:]]
    text = f"Seconds to target, geometric means:\n\n{table(header, times)}\n\nTime over static's:\n\n{table(header, ratios)}"
    if shares:
        text += f"\n\nShare of the ideal speed-up from {counts[0]} workers:\n\n{table(header, shares)}"
    return text


def ratio(results, policy, workers):
    return paired([one for one in results if one["workers"] == workers], policy, "static")


def part(found):
    goals, texts, charts = [], [], {}
    for backend, what in (("virtual", "real SGD"), ("sim", "simulated")):
        results = sum(of_kind(found, backend).values(), [])
        if not results:
            continue
        counts = sizes(results)
        own = {n: ratio(results, "default", n) for n in counts}
        rules = [policy for policy in policies_of(results) if policy not in ("static", "default")]
        goals.append(Goal(f"less time than static, {what}, {list_of(f'{n:,}' for n in counts)} workers",
                          ", ".join(f"{own[n].mean:.2f}{star(of(results, 'default', n))}" for n in counts),
                          all(own[n].mean < 0.995 and not star(of(results, "default", n)) for n in counts)))
        if rules:
            best = {n: min((geometric(one["time_to_target_s"] for one in of(results, rule, n)),
                            rule) for rule in rules) for n in counts}
            over = {n: geometric(one["time_to_target_s"] for one in of(results, "default", n)) / best[n][0] for n in counts}
            goals.append(Goal(f"no slower than the best rule of each size, {what}",
                              ", ".join(f"{over[n]:.2f}{star(of(results, 'default', n))} (`{best[n][1]}`)" for n in counts),
                              all(over[n] <= 1.005 and not star(of(results, "default", n)) for n in counts)))
        missed = [f"`{policy}` {reached([one for one in results if one['policy'] == policy])}" for policy in policies_of(results)]
        seeds = sorted({one["seed"] for one in results})
        if backend == "virtual":
            head = ("### Real SGD\n\n" + prose(
                "LeNet to accuracy 0.89 on Fashion-MNIST (`scenarios/contended.toml`: speeds 4 : 2 : 1 : 1 in turn, slowed "
                "now and then; 32 samples each at the start). The job is the same on any number of workers, so the start "
                "batch grows with them and the ideal is a time that falls as they grow."))
        else:
            head = ("### Simulated\n\n" + prose(
                "ResNet50's constants on a job that grows with the cluster (`scenarios/scale_128.toml`: speeds 4 : 2 : 1 "
                "with contention; base batch, samples and noise in proportion to the workers), so the ideal is the same time "
                "on any number."))
        several = f"Seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "One seed"
        intervals = " Intervals: 95 %, Student's t over seeds." if len(seeds) > 1 else ""
        texts.append(head + "\n\n" + prose(f"{several}; targets reached: {list_of(missed)}. A star: a target was missed and counts "
                                           f"with the whole time budget.{intervals}") +
                     "\n\n" + tables(results, weak=backend == "sim"))
        rows = [row_of(f"{policy}, {n:,}", ratio(results, policy, n), color) for n in counts
                for color, policy in enumerate(policies_of(results)) if policy not in ("static", "balanced")]
        charts[f"scale_{backend}"] = chart(f"Time over static's, {what}, by number of workers", "faster than static", rows)
    verdict = " ".join(f"{sentence(goal.text.split(', ', 1)[1])}: {goal.result} of static's time." for goal in goals
                       if goal.text.startswith("less time"))
    if of_kind(found, "hindsight"):
        texts.append(hindsight(of_kind(found, "hindsight"), goals))
    return Part(goals, "\n\n".join(texts), charts, verdict)


def hindsight(results, goals):
    """Against bounds that know the job: adds its goals, returns its text."""
    counts = sorted(results)
    over = lambda policy, bound, n: Ratio([own / other for own, other in zip(results[n][policy], results[n][bound])])  # noqa: E731
    own = {n: over("default", "clairvoyant", n).mean for n in counts}
    goals.append(Goal(f"within 15 % of the clairvoyant bound, held-out quadratics, {list_of(map(str, counts))} workers",
                      ", ".join(f"{one:.2f}" for one in own.values()), all(one <= 1.15 for one in own.values())))
    constant = {n: over("default", "best_constant", n).mean for n in counts}
    if 8 in counts and 32 in counts:
        goals.append(Goal("32 workers not worse than 8 against the best constant batch in hindsight, held-out quadratics",
                          f"{constant[32]:.2f} and {constant[8]:.2f}", constant[32] <= constant[8]))
    rows = [[n, *(str(over(policy, bound, n)) for bound in ("clairvoyant", "best_constant", "static")
                  for policy in ("composite", "default"))] for n in counts]
    return "### Against hindsight\n\n" + prose(
        "The held-out scenarios with their four quadratics, one seed: time over the clairvoyant's (the best schedule found "
        "with full knowledge of the model and of future events), over the best constant global batch in hindsight, and over "
        "static's. 95 % intervals over jobs (Student's t).") + "\n\n" + table(
        ["workers", *(f"`{policy}` / {bound}" for bound in ("clairvoyant", "best constant", "static")
                      for policy in ("composite", "default"))], rows)
