"""What each choice of the learner is worth, on real jobs."""
import population
from document import Goal, Part
from figures import chart, list_of, prose, row_of, table
from steps import learn, learned

TITLE = "Ablation"
CLAIM = ("What each part of the state, the actions and the learner is worth, with the present ones: a policy is learned "
         "without it, and used on the 42 validation jobs with real SGD.")
BEFORE = "Ablations of before, on quadratics, are in [learning.md](learning.md#ablations)."
DATA = ["fashion_mnist", "cifar10", "bible"]

VARIANTS = {"full": ("everything, learned anew", []),
            "no-network": ("without network features", ["--without", "network"]),
            "no-system": ("without system features", ["--without", "system"]),
            "no-statistics": ("without statistical features", ["--without", "statistics"]),
            "no-lookahead": ("without lookahead (times at half and twice the batch)",
                             ["--without", "time_at_twice,time_at_half"]),
            "no-landmarks": ("without landmarks in the state", ["--without", "goodput_gap,soonest_gap"]),
            "local": ("local actions too", ["--actions", "guided,share,team+local"]),
            "anchored": ("places around the base batch", ["--actions", "anchored,share,team"]),
            "pure": ("steps, no rule inside, 70 updates", ["--actions", "wide,share,team", "--updates", "70"]),
            "published": ("the published form: each worker by itself, additive, 70 updates",
                          ["--actions", "additive,current,local", "--updates", "70"]),
            "window-20": ("learned with windows of 20 iterations", ["--window", "20"]),
            "quadratics": ("learned without miniatures", ["--miniatures", "0"])}
CAUSE = ("Why parts make no difference: actions are factors on the batch of the rule `composite`, whose own pace "
         "is {} of the full learner's. What is learned on top of it is less than these jobs can show, and so may be a part of "
         "what it is learned from.")
NO_RULE = ("pure", "published")  # variants whose actions have no rule inside
SEEDS = 3  # of the full learner: what chance alone changes


def steps(place):
    made, files = [], {}
    learners = {name: (flags, 1) for name, (_, flags) in VARIANTS.items()}
    learners.update({f"seed-{seed}": ([], seed) for seed in range(2, SEEDS + 1)})
    if place.quick:
        learners = {"full": ([], 1), "no-network": (VARIANTS["no-network"][1], 1)}
    for name, (flags, seed) in learners.items():
        files[name] = place.path(f"{name}.safetensors")
        made.append(learn(name, [*flags, "--seed", seed], place, 1.4 if "--updates" in flags else 0.4))
    if place.quick:
        made.append(population.step("use", "validation-jobs", ",".join(["static", *files.values()]), place, 1,
                                    population.quick_jobs(), 0.1,
                                    after=tuple(step.name for step in made)))
        return made
    made.append(population.step("use", "validation-jobs", ",".join(["static", "composite", "default", *files.values()]), place, 50,
                                after=tuple(step.name for step in made)))
    return made


def condense(outputs):
    names = {one["name"]: called(one["name"]) for one in outputs["use"]["policies"]}
    found = population.condense(outputs["use"], names)
    return {**found, "learned": learned(outputs)}


def called(policy):
    return policy.rsplit("/", 1)[-1].removesuffix(".safetensors")


def title(name):
    if name.startswith("seed-"):
        return f"everything, seed {name[5:]}"
    return VARIANTS[name][0] if name in VARIANTS else f"`{name}`"


def part(found):
    variants = [name for name in found["policies"] if name not in ("static", "full")]
    over = {name: population.pace(found["jobs"], name, "full") for name in variants}
    seeds = [over[name].mean for name in variants if name.startswith("seed-")]
    chance = max([max(one, 1 / one) for one in seeds], default=1.0)
    rows = [[title("full"), str(population.ratio(found["jobs"], "full")), "1", "-", worst(found, "full"), score(found, "full")]]
    rows += [[title(name), str(population.ratio(found["jobs"], name)), str(over[name]), over[name].record(), worst(found, name),
              score(found, name)]
             for name in variants]
    matters = [name for name in variants if name in VARIANTS and over[name].low > 1 and over[name].mean > chance]
    harms = [name for name in variants if name in VARIANTS and over[name].high < 1 and over[name].mean < 1 / chance]
    idle = [name for name in variants if name in VARIANTS and name not in matters and name not in harms]
    goals = [Goal("every part makes a difference that is not chance",
                  f"{len(matters) + len(harms)} of {len(matters) + len(harms) + len(idle)} do", not idle)]
    text = "\n\n".join([
        prose(f"Time over static's, and pace over the full learner's ([judge.md](judge.md#how-to-read-the-figures)), on "
              f"{len(found['jobs'])} validation jobs, 95 % intervals over jobs (Student's t); won, tied and lost by pace. "
              f"Learners of other seeds, which differ in chance alone, differ from the full one's pace by a factor of up to "
              f"{chance:.3f} in the mean, so a variant within that is no difference."),
        table(["variant", "time / static's", "pace / the full learner's", "won / tied / lost", "worst time against static",
               "score in simulation"], rows),
        prose(f"Slower than the full learner: {names_of(matters)}. Faster: {names_of(harms)}. No clear difference: "
              f"{names_of(idle)}."),
        *cause(over, idle, matters),
        prose("Policies: " + list_of(f"`{name}` {one[:12]}" for name, one in found["policies"].items() if one) + ".")])
    charts = {"ablation": chart("Pace over the full learner's, a dot per validation job", "faster than the full learner",
                                [row_of(name, ratio) for name, ratio in over.items()], right="slower")}
    rule = f"; the rule `composite` alone has {over['composite']} of the full learner's (below 1 is faster)" if "composite" in over else ""
    return Part(goals, text, charts, f"{goals[0].result.removesuffix(' do')} parts make a difference by pace{rule}.")


def cause(over, idle, matters):
    """Where the rule alone is as good as what is learned on top of it."""
    rule = over.get("composite")
    if not idle or rule is None or not 0.9 <= rule.low <= 1 <= rule.high <= 1.1:
        return []
    worse = all(name in matters for name in NO_RULE)
    return [prose(CAUSE.format(rule) + (" Where no rule is inside, and in the published form, learning has more to do, and does "
                                        "worse." if worse else ""))]


def names_of(names):
    return "; ".join(title(name) for name in names) or "none"


def worst(found, name):
    ratio = population.ratio(found["jobs"], name)
    return f"{ratio.worst:.2f}, {ratio.worst_name.split(' ')[0]}"


def score(found, name):
    return f"{found['learned'][name]['validation']:.3f}" if name in found["learned"] else "-"
