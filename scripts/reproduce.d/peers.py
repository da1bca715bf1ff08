"""The rules against what their authors published, and whether they are fair opponents."""
import json

import population
from document import Goal, Part
from figures import chart, code, prose, row_of, table
from steps import Step

TITLE = "Peers"
CLAIM = ("Whether the rules are what was published: `goodput` against Pollux's formula, `balanced` against OmniLearn's and "
         "LB-BSP's updates, each computed independently from the same measurements; and whether they are fair opponents, "
         "which an opponent that loses to static on a quiet cluster is not.")
PARTIAL = True
DATA = ["fashion_mnist", "cifar10", "bible"]

# What is compared, how a difference is written, and the largest that is allowed.
TESTS = {"GoodputPolicyTest.ChoosesTheBatchOfThePublishedFormula":
         ("`goodput:scale=1`, Pollux and AdaptDL: the chosen global batch", "{:.2f} powers of two", 0.2),
         "BalancedPolicyTest.IsOmniLearnsUpdateAtAConstantGlobalBatch":
         ("`balanced`, OmniLearn: a worker's batch", "{:.2f} samples", 1),
         "BalancedPolicyTest.IsLbBspsUpdateWithTheMeasuredSpeeds":
         ("`balanced`, LB-BSP: a worker's batch", "{:.2f} samples", 1)}
POLICIES = "static,balanced,balanced:dead_band=0.2,goodput:scale=1,goodput,composite"
# The jobs of both validation suites whose cluster is quiet, and that have a target.
QUIET = {"validation-jobs": ["validation-01", "validation-15", "validation-17", "validation-22", "validation-25",
                             "validation-34"],
         "more-validation-jobs": ["more-02", "more-07", "more-11", "more-18", "more-20", "more-42", "more-44",
                                  "more-63"]}


def steps(place):
    report = place.path("formulas.json")
    made = [Step("formulas",
                 ["build/release/dynamix/policies/policies_test", "--gtest_filter=" + ":".join(TESTS),
                  f"--gtest_output=json:{report}"],
                 0.1, collect=lambda: json.loads((place.root / report).read_text()))]
    if place.quick:
        return made
    return [*made,
            *(population.step(f"quiet-{suite}", suite, POLICIES, place, 0.8 * len(jobs), jobs) for suite, jobs in QUIET.items())]


def condense(outputs):
    return {step: tests(output) if step == "formulas" else population.condense(output)["jobs"] for step, output in outputs.items()}


def tests(output):
    return {f"{test['classname']}.{test['name']}": {"settings": int(test["settings"]), "furthest": float(test["furthest"]),
                                                    "passed": "failures" not in test}
            for suite in output["testsuites"] for test in suite["testsuite"]}


def part(found):
    goals = []
    for name, (what, unit, limit) in TESTS.items() if "formulas" in found else ():
        one = found["formulas"][name]
        goals.append(Goal(f"{what}, at most {unit.format(limit)} from the published, same measurements",
                          f"{unit.format(one['furthest'])} at most, in {one['settings']} settings",
                          one["passed"] and one["furthest"] <= limit))
    text = prose("The formulas are written out in `dynamix/policies/goodput_test.cc` and `rules_test.cc`, term by term as "
                 "their authors have them, and share no code with the rules. A power of two of 0.2 is 15 %: `goodput` "
                 "searches in steps, and near its best goodput is flat. One sample is rounding.")
    quiet = [job for step, jobs in found.items() if step.startswith("quiet") for job in jobs
             if job["factors"]["cluster"] == "quiet"]
    if not quiet:
        return Part(goals, text)
    policies = [policy for policy in quiet[0]["times"] if policy != "static"]
    ratios = {policy: population.ratio(quiet, policy) for policy in policies}
    tuned = [job for job in quiet if job["factors"]["start"] == "tuned"]
    for policy in ("balanced", "goodput", "composite"):
        goals.append(Goal(f"`{policy}` does not lose to static in the mean of the {len(quiet)} quiet validation jobs", str(ratios[policy]),
                          ratios[policy].mean <= 1.005))
    rows = [[code(policy), str(ratio), ratio.record(), f"{ratio.worst:.2f}, {ratio.worst_name}",
             f"{population.ratio(tuned, policy).mean:.2f}" if tuned else "-"] for policy, ratio in ratios.items()]
    text += "\n\n" + prose("Real SGD on the validation jobs whose cluster is quiet: time over static's, with 95 % intervals "
                           "over jobs (Student's t). `scale=1` and `dead_band=0.2` are the published constants; the others "
                           "were tuned on all validation jobs, as the policy is.")
    text += "\n\n" + table(["rule", "time / static's", "won / tied / lost", "worst", f"the {len(tuned)} that start tuned"], rows)
    return Part(goals, text, {"peers": chart("Rules on quiet validation jobs, time over static's", "faster than static",
                                             [row_of(policy, ratio) for policy, ratio in ratios.items()])},
                "The rules choose what was published, within what is allowed below."
                if "formulas" in found and all(goal.met for goal in goals[:len(TESTS)]) else "")
