"""Learned without a family, used on it, against learned with it."""
import population
from document import Goal, Part
from figures import chart, list_of, paired, prose, result_of, row_of, table
from steps import Step, learn, learned

TITLE = "Transfer"
CLAIM = ("A policy that was learned without an architecture, used on it, against one that was learned with it: VGG16 to "
         "VGG19, ResNet18 to ResNet34, CNN to a transformer, and from at most 8 workers to 32.")
BEFORE = "A short test of before is in [history.md](history.md#simulated-jobs-sim)."
DATA = ["fashion_mnist", "bible"]

# name -> what it is called, flags of the learner that did not see it, of the one that did, workload and workers it is used on.
# The transformer is used in real jobs only: its quadratic does not reach its target from the held-out scenarios' start batches.
PAIRS = {"vgg": ("VGG16 to VGG19", ["--fitted", "vgg16_cifar10"], ["--fitted", "vgg19_cifar10"], "vgg19_cifar10", 8),
         "resnet": ("ResNet18 to ResNet34", ["--fitted", "resnet18_cifar10"], ["--fitted", "resnet34_cifar10"],
                    "resnet34_cifar10", 8),
         "text": ("CNN to transformer", ["--fitted", "cnn_cifar10"], ["--fitted", "transformer_moby"], None, None),
         "workers": ("8 to 32 workers", ["--max-workers", "8"], ["--max-workers", "32"], "vgg16_cifar10", 32)}
# Of the validation jobs those that train a transformer: real SGD.
TRANSFORMER = ["validation-03", "validation-09", "validation-20", "validation-22", "validation-26", "validation-35",
               "validation-38"]


def steps(place):
    made = []
    for name, (_, without, with_it, workload, workers) in list(PAIRS.items())[:1 if place.quick else None]:
        files = {}
        for kind, flags in (("without", without), ("with", with_it)):
            files[kind] = place.path(f"{name}-{kind}.safetensors")
            made.append(learn(f"{name}-{kind}", flags, place, 0.4))
        policies = ",".join(["static", "composite", *files.values()])
        after = tuple(f"learn-{name}-{kind}" for kind in files)
        if workload is None:
            made.append(population.step("use-text-real", "validation-jobs", policies, place, 4, TRANSFORMER, after=after))
            continue
        made.append(Step(f"use-{name}",
                         ["dynamix", "evaluate", "--suite", "validation" if place.quick else "held_out", "--workloads", workload,
                          "--workers", workers, "--seeds", 1 if place.quick else 2, "--policies", policies,
                          "--no-static-sizes", "--no-bounds", "--threads", 1, "--json"], 1.5, after=after))
    return made


def called(policy):
    return "without it" if "-without" in policy else "with it" if "-with" in policy else policy


def condense(outputs):
    found = {}
    for name, output in outputs.items():
        if name == "use-text-real":
            names = {one["name"]: called(one["name"]) for one in output["policies"]}
            found["text-real"] = population.condense(output, names)["jobs"]
        elif name.startswith("use-"):
            found[name[4:]] = [{**result_of(one), "policy": called(one["policy"])} for one in output["results"]]
    return {**found, "learned": learned(outputs)}


def part(found):
    goals, rows, dots = [], [], []
    for name in [*PAIRS, "text-real"]:
        if name not in found:
            continue
        title = "CNN to transformer, real SGD" if name == "text-real" else PAIRS[name][0] + ", simulated"
        if name == "text-real":
            jobs = [job for job in found[name] if job["factors"]["model"] == "transformer"]
            over = lambda policy, base: population.ratio(jobs, policy, base)  # noqa: E731
        else:
            over = lambda policy, base, results=found[name]: paired(results, policy, base)  # noqa: E731
        ratio = over("without it", "with it")
        goals.append(Goal(f"{title}: at most 5 % slower than learned with it", str(ratio), ratio.mean <= 1.05))
        rows.append([title, len(ratio.ratios),
                     *(str(over(policy, "static")) for policy in ("composite", "without it", "with it")), str(ratio),
                     ratio.record(), f"{ratio.worst:.2f}"])
        dots.append(row_of(title, ratio))
    text = prose("Two learners per line that differ in what they saw, in nothing else: the flags of the shipped policy, one "
                 "seed each, but for the workload that quadratics start from (or the largest cluster). Used in scenarios "
                 "that neither saw: the held-out scenarios with that workload, or the validation jobs that train a "
                 "transformer. Times over static's and over each other's, with 95 % intervals over jobs (Student's t).") + "\n\n" + table(
        ["from, to", "jobs", "`composite` / static", "learned without / static", "learned with / static", "without / with",
         "won / tied / lost", "worst"], rows) + "\n\n" + prose("Policies: " + list_of(
            f"`{name}` {one['checksum'][:12]}" for name, one in found["learned"].items()) + ".")
    text += "\n\n" + prose("Their actions are factors on the batch of the rule `composite`, which is computed from what the job "
                           "itself measures, so most of what is used needs no transfer.")
    return Part(goals, text,
                {"transfer": chart("Time of the learner without it over the one with it, a dot per job", "no harm", dots)},
                "Learned without an architecture or a size, over learned with it: " +
                ", ".join(goal.result for goal in goals) + ".")
