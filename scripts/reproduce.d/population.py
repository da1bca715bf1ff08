"""Populations of real jobs (docs/judge.md): the command, what is kept of it, and tables that several experiments show."""
import os

from figures import Ratio, code, interval, prose, table
from steps import Step


def step(name, suite, policies, place, minutes, jobs=None, length=None, after=(), again=None):
    """`dynamix evaluate` on a population. It keeps its runs itself, so it goes on where it was. `again`: a policy whose lost
    jobs are run with other seeds too."""
    cache = place.path("cache")  # of real runs: runs/judge, which they share
    command = ["dynamix", "evaluate", "--backend", "virtual", "--suite", suite, "--policies", policies]
    command += ["--jobs", ",".join(jobs)] if jobs else []
    command += ["--length", length] if length else []
    command += ["--again", again] if again else []
    command += ["--cache", cache] if place.quick else []
    command += ["--threads", place.cores] if place.cores != os.cpu_count() else []
    return Step(name, [*command, "--json"], minutes, alone=True, after=after)


def condense(output, names=None):
    """Summaries, breakdowns and per job its factors and times. `names`: other names of policies (files of variants)."""
    names = names or {}
    called = lambda policy: names.get(policy, policy)  # noqa: E731
    jobs = []
    for job in output["jobs"]:
        times = {called(one["policy"]): [round(one["time_to_target_s"], 3), one["reached"]] for one in job["results"]}
        paces = {called(one["policy"]): rounded(one["pace_over_static"]) for one in job["results"] if "pace_over_static" in one}
        jobs.append({"name": job["name"], "factors": job["factors"], "start_over_base": job["start_over_base"], "times": times,
                     "paces": paces})
    keep = ("geomean", "interval", "wins", "ties", "losses", "worst_ratio", "worst_job", "pace")
    summary = {}
    for policy, one in output["summary"].items():
        summary[called(policy)] = {
            key: ({part: value[part] for part in keep} if key.startswith("vs_") else value) for key, value in one.items()}
    checksums = {one["name"]: one["checksum"] for one in output["policies"]}
    looks = [look for look in output["looks"] if look["whole"] == output["whole"] and look["policy"] == "default"
             and look["checksum"] == checksums.get("default")]
    return {"suite": output["suite"], "version": output["version"], "whole": output["whole"], "best_rule": output["best_rule"],
            "policies": {called(one["name"]): one["checksum"] for one in output["policies"]}, "summary": rounded(summary),
            "jobs": jobs, "left_out": output.get("left_out", []),
            "first_look": min((look["date"] for look in looks), default=None)}


def left_out(found):
    """A sentence, or nothing."""
    names = found.get("left_out")
    return f" Left out, because its reference run learned too little to set a target: {', '.join(names)}." if names else ""


def rounded(data):
    if isinstance(data, float):
        return float(f"{data:.4g}")
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    return [rounded(value) for value in data] if isinstance(data, list) else data


def time(job, policy):
    return job["times"][policy][0]


def ratio(jobs, policy, baseline="static"):
    """Over these jobs; the interval takes jobs as independent, `interval` of the summary does not."""
    chosen = [job for job in jobs if policy in job["times"] and baseline in job["times"]]
    return Ratio([time(job, policy) / time(job, baseline) for job in chosen], [describe(job) for job in chosen])


def pace(jobs, policy, baseline="static"):
    """The same by pace; over another baseline than static as the quotient of both paces over static's."""
    over = lambda job, one: 1.0 if one == "static" else job["paces"].get(one)  # noqa: E731
    chosen = [job for job in jobs if over(job, policy) and over(job, baseline)]
    return Ratio([over(job, policy) / over(job, baseline) for job in chosen], [describe(job) for job in chosen])


def describe(job):
    factors = job["factors"]
    return f"{job['name']} ({factors['model']} x{factors['workers']}, {factors['cluster']}, {factors['start']})"


def with_interval(one):
    return f"{one['geomean']:.2f} {interval(*one['interval'])}"


def summary_table(found, policies=None):
    """A row per policy: against static and against the best rule, with the intervals over what is trained."""
    best = found["best_rule"]
    rows = []
    for policy in policies or found["policies"]:
        one = found["summary"][policy]
        against = one.get("vs_static")
        beside = one.get(f"vs_{best}")
        rows.append([code(policy), "1" if policy == "static" else with_interval(against),
                     "1" if policy == best else with_interval(beside) if beside else "-",
                     "1" if policy == "static" else with_interval(against["pace"]),
                     "1" if policy == best else with_interval(beside["pace"]) if beside else "-",
                     "-" if policy == "static" else f"{against['wins']} / {against['ties']} / {against['losses']}",
                     f"{100 * one['reached']:.0f} %",
                     "-" if policy == "static" else f"{against['worst_ratio']:.2f}, {against['worst_job'].split(',')[0]}",
                     "-" if policy == "static" else f"{against['pace']['worst']:.2f}, {against['pace']['worst_job'].split(',')[0]}"])
    return table(["policy", "time / static's", f"time / `{best}`'s" if best else "-", "pace / static's",
                  f"pace / `{best}`'s" if best else "-", "won / tied / lost", "reached",
                  "worst against static", "by pace"],
                 rows)


EQUAL = ("accuracy_at_equal_time", "accuracy_at_equal_epochs", "loss_at_equal_time", "loss_at_equal_epochs")


def equal_table(found):
    rows = []
    for policy in found["policies"]:
        equal = found["summary"][policy].get("equal")
        if equal:
            rows.append([code(policy), *(f"{equal[key]:.3f}" for key in EQUAL)])
    return table(["policy", "accuracy, equal time", "accuracy, equal epochs", "loss, equal time", "loss, equal epochs"], rows)


def factor_table(found, factors, policies):
    """Time over static's by the value of each factor."""
    rows = []
    for factor in factors:
        values = {job["factors"][factor] for job in found["jobs"]}
        for value in sorted(values, key=lambda one: (int(one) if one.isdigit() else 0, one)):
            jobs = [job for job in found["jobs"] if job["factors"][factor] == value]
            rows.append([f"{factor}: {value}", len(jobs), *(f"{ratio(jobs, policy).mean:.2f}" for policy in policies)])
    return table(["jobs by", "number", *map(code, policies)], rows)


def losses(found, policy, beyond=1.05):
    """Jobs in which the policy takes longer than static by more than that, the worst first."""
    lost = [(time(job, policy) / time(job, "static"), job) for job in found["jobs"]]
    return sorted([one for one in lost if one[0] > beyond], key=lambda one: -one[0])


def slow_paces(found, policy, beyond=1.05):
    """Jobs whose pace over static's is above that, the worst first."""
    return sorted((job for job in found["jobs"] if job["paces"].get(policy, 0) > beyond), key=lambda job: -job["paces"][policy])


def over_static(job, policy):
    pace = f", pace {job['paces'][policy]:.2f}" if policy in job["paces"] else ""
    missed = "" if job["times"][policy][1] else ", missed"
    beside = "" if job["times"]["static"][1] else " (static missed)"
    return f"{time(job, policy) / time(job, 'static'):.2f}{missed}{beside}{pace}"


def loss_table(found, policy, others):
    lost = [job for _, job in losses(found, policy)]
    lost += [job for job in slow_paces(found, policy) if job not in lost]
    if not lost:
        return prose(f"`{policy}` loses no job by more than 5 %.")
    rows = [[describe(job),
             ", ".join(f"{key} {job['factors'][key]}" for key in ("optimizer", "learning rate", "rule", "schedule")),
             *(over_static(job, one) for one in (policy, *others))] for job in lost]
    return table(["job", "what", *(f"`{one}` / static" for one in (policy, *others))], rows)


def again_table(again, jobs):
    """The lost jobs with other seeds; and how many of them are slower whatever the luck."""
    by_name = {job["name"]: job for job in jobs}
    rows = [[describe(by_name[one["name"]]), with_interval(one["vs_static"]), with_interval(one["vs_static"]["pace"]),
             f"{one['missed']} of {len(one['ratios'])}", one["static_missed"], "yes" if one["regretted"] else "not shown"]
            for one in again["jobs"]]
    return table(["job", "time / static's", "pace / static's", "missed", "static missed", "slower by more than 5 %?"], rows)


def quick_jobs():
    """Two short jobs that need no other data than Fashion-MNIST."""
    return ["validation-15", "validation-34"]
