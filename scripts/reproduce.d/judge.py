"""The judge: the population of real jobs, once, with the policy that ships."""
import population
from document import Goal, Part
from figures import chart, code, prose, row_of, table

TITLE = "The judge"
CLAIM = ("The 63 jobs of [judge.md](judge.md), real SGD of seven pairs of model and data on modelled clocks, drawn from a seed: what the "
         "policy that ships does to jobs that people have.")
BEFORE = "What the judge said on 17 November 2026 is in [history.md](history.md#the-judge-virtual)."
DATA = ["fashion_mnist", "cifar10", "bible"]
PARTIAL = True

POLICIES = ("static,balanced,base,noise_scale,goodput,composite,default,guarded:default,"
            "steps:static,steps:default")
JOBS = 63


def steps(place):
    if place.quick:  # never the judge's own jobs
        jobs = population.quick_jobs()
        return [population.step(name, "validation-jobs", "static,balanced,default", place, 1, jobs, 0.1, again=again)
                for name, again in (("judge", None), ("again", "default"))]
    judge = population.step("judge", "judge", POLICIES, place, 45)
    runs = JOBS * (len(POLICIES.split(",")) + 1)  # and the references
    judge.watch = lambda: len(list((place.root / "runs/judge").glob("judge-*.json"))) / runs
    # The runs of its first policies are those of the step before.
    return [judge, population.step("again", "judge", "static,default", place, 15, again="default")]


def condense(outputs):
    again = {"again": population.rounded(outputs["again"]["again"])} if "again" in outputs else {}
    return {**({"judge": population.condense(outputs["judge"])} if "judge" in outputs else {}), **again}


def part(steps_found):
    if "judge" not in steps_found:
        return Part([], prose("The judge itself was not run."), {})
    found, again = steps_found["judge"], steps_found.get("again")
    best = found["best_rule"]
    jobs, own = found["jobs"], found["summary"]["default"]
    against = own[f"vs_{best}"]
    worst = own["vs_static"]
    lost = population.losses(found, "default")
    rules = [policy for policy, checksum in found["policies"].items()
             if checksum is None and policy != "static" and not policy.startswith(("guarded:", "steps:"))]
    hindsight = population.ratio([{**job,
                                   "times": {**job["times"],
                                             "best": min((job["times"][rule] for rule in rules))}} for job in jobs],
                                 "default", "best")
    goals = [Goal(f"at most 0.90 of the best rule's time (`{best}`), interval below 1", population.with_interval(against),
                  against["geomean"] <= 0.9 and against["interval"][1] < 1),
             Goal("at most the best rule of each job in hindsight", f"{hindsight.mean:.2f}", hindsight.mean <= 1)]
    for text, chosen in (("badly started", lambda f: f["start"].startswith("bad")),
                         ("heterogeneous and contended", lambda f: f["cluster"] in ("contended", "spread", "two kinds"))):
        some = [job for job in jobs if chosen(job["factors"])]
        if some:
            ratio = population.ratio(some, "default")
            goals.append(Goal(f"at most 0.54 of static's time on {text} jobs ({len(some)})", f"{ratio.mean:.2f}",
                              ratio.mean <= 0.54))
    goals.append(Goal("never more than 5 % slower than static",
                      f"worst {worst['worst_ratio']:.2f}; {len(lost)} of {len(jobs)} jobs", not lost))
    if again:
        regretted = [one["name"] for one in again["jobs"] if one["regretted"]]
        goals.append(Goal(f"the same of lost jobs with {again['seeds']} other seeds each, whose interval lies above 5 %",
                          f"{len(regretted)} of {len(again['jobs'])}", not regretted))
    if "balanced" in found["policies"]:
        beside = population.ratio(jobs, "default", "balanced")
        goals.append(Goal("never more than 10 % slower than `balanced`", f"worst {beside.worst:.2f}; "
                          f"{sum(one > 1.1 for one in beside.ratios)} of {len(jobs)} jobs", beside.worst <= 1.1))
    slow = population.slow_paces(found, "default")
    goals.append(Goal("never more than 5 % slower than static, by pace",
                      f"worst {worst['pace']['worst']:.2f}; {len(slow)} of {len(jobs)} jobs", not slow))
    quiet = [job for job in jobs if job["factors"]["cluster"] == "quiet" and job["factors"]["start"] == "tuned"]
    if quiet:
        ratios = population.ratio(quiet, "default").ratios
        paces = [f"{job['paces']['default']:.2f}" for job in quiet if "default" in job["paces"]]
        goals.append(Goal(f"at most 1 % slower than static on quiet, tuned jobs ({len(quiet)})",
                          ", ".join(f"{one:.2f}" for one in ratios) + " (by pace " + ", ".join(paces) + ")",
                          max(ratios) <= 1.01))
    equal, still = own["equal"], found["summary"]["static"]["equal"]
    gain = [100 * (equal[key] - still[key]) for key in ("accuracy_at_equal_time", "accuracy_at_equal_epochs")]
    goals.append(Goal("3 points more accuracy than static at equal time, not less at equal epochs (means)",
                      f"{gain[0]:+.1f}, {gain[1]:+.1f} points", gain[0] >= 3 and gain[1] >= 0))
    shown = [policy for policy in found["policies"] if policy != "static"]
    text = "\n\n".join([
        prose(f"{len(jobs)} jobs of the suite `{found['suite']}`, code version `{found['version']}`; with this "
              f"code `default` was first looked at on {found['first_look'][:10] if found['first_look'] else 'an unknown day'}, and how often before is "
              "in [judge.md](judge.md). \"Tuned\" is where a job starts (at its base batch): its learning rate may still be "
              "wrong. A missed target counts with the whole time "
              "budget. Pace: the mean ratio of times to the same held-out losses on the way, which hangs less on luck than the "
              "moment of one target. In brackets: 95 % intervals over what is trained." + population.left_out(found)),
        population.summary_table(found),
        prose("**Accuracy.** Held-out, means over jobs, when the job's first policy reached its target, by time and by samples:"),
        population.equal_table(found), "**Where `default` loses** by more than 5 %, by time or by pace, with the best rule beside it:",
        population.loss_table(found, "default", [best] if best else []), *lost_again(again, jobs), "Time over static's, geometric means:",
        population.factor_table(found, ("start", "cluster", "workers", "rule", "model"), shown), *clocks(found)])
    charts = {}
    for base, name in (("static", "judge_static"), (best, "judge_best_rule")):
        rows = [row(found, policy, base, color) for color,
                policy in enumerate(found["policies"]) if policy not in (base, "static")]
        charts[name] = chart(f"Time over {base}'s, a dot per job; hollow: target missed", f"faster than {base}", rows)
    verdict = (f"On {len(jobs)} jobs `default` takes {population.with_interval(worst)} of the time of doing nothing and "
               f"{population.with_interval(against)} of the best rule's (`{best}`; {population.with_interval(against['pace'])} by "
               f"pace); it is more than 5 % slower than doing nothing in {len(lost)}, the worst {worst['worst_ratio']:.2f}"
               + (f"; of {len(again['jobs'])} of them run again, {len(regretted)} are slower beyond chance" if again and lost else "") +
               ".")
    return Part(goals, text, charts, verdict)


def lost_again(again, jobs):
    """Whether a lost job was bad luck."""
    if not again or not again["jobs"]:
        return []
    return [prose(f"**The lost jobs again.** A time to target hangs on one moment, so one run says little of one job. Each of "
                  f"these jobs with {again['seeds']} other seeds (weights, order of samples, events; a target of its own), with "
                  "95 % intervals over seeds. Seeds are new: what they say does not depend on why the job was looked at."
                  + (f" Left out: {again['left_out']} runs whose reference learned too little to set a target."
                     if again.get("left_out") else "")),
            population.again_table(again, jobs)]


def clocks(found):
    """What schedules by steps are worth, for static and rules as for the policy."""
    rows = []
    for policy in found["policies"]:
        plain = policy.replace("steps:", "")
        if plain == policy or plain not in found["policies"]:
            continue
        times, paces = population.ratio(found["jobs"], policy, plain), population.pace(found["jobs"], policy, plain)
        rows.append([code(plain), str(times), str(paces),
                     *(f"{100 * found['summary'][one]['reached']:.0f} %" for one in (plain, policy)),
                     *(len(lose(found, one)) if one != "static" else "-" for lose in (population.losses, population.slow_paces)
                       for one in (plain, policy))])
    if not rows:
        return []
    return [prose("**The schedule's clock** ([training.md](training.md)). `steps:` has the schedules of its jobs run by steps "
                  "instead of by samples. Each policy with it over the same policy without; intervals take jobs as "
                  "independent. Lost: jobs more than 5 % slower than static by samples."),
            table(["policy", "time, steps / samples", "pace", "reached, samples", "steps", "lost, samples", "steps",
                   "lost by pace, samples", "steps"], rows)]


def row(found, policy, base, color):
    made = row_of(policy, population.ratio(found["jobs"], policy, base), color)
    one = found["summary"][policy][f"vs_{base}"]
    missed = [not job["times"][policy][1] for job in found["jobs"]]
    return {**made, "mean": one["geomean"], "low": one["interval"][0], "high": one["interval"][1],
            "dots": [{**dot, "hollow": hollow} for dot, hollow in zip(made["dots"], missed)]}
