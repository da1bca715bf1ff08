"""Figures and how they are written: ratios of times with intervals, tables, prose, charts."""
import math
import statistics
import textwrap

TIE = 1.02  # ratios from 1 / TIE to TIE are ties, as in dynamix/evaluation/statistics.h
# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2 beyond is close enough.
STUDENT = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def geometric(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


class Ratio:
    """Ratios of pairs: their geometric mean, and its 95 % interval (Student's t on logarithms; none of one pair)."""

    def __init__(self, ratios, names=None):
        self.ratios, self.names = list(ratios), list(names or [""] * len(ratios))
        logs = [math.log(ratio) for ratio in self.ratios]
        self.mean = math.exp(statistics.fmean(logs))
        self.low = self.high = self.mean
        if len(logs) > 1:
            freedom = len(logs) - 1
            half = (STUDENT[freedom - 1] if freedom <= len(STUDENT) else 2) * statistics.stdev(logs) / math.sqrt(len(logs))
            self.low, self.high = math.exp(math.log(self.mean) - half), math.exp(math.log(self.mean) + half)
        self.won = sum(ratio < 1 / TIE for ratio in self.ratios)
        self.lost = sum(ratio > TIE for ratio in self.ratios)
        self.tied = len(self.ratios) - self.won - self.lost
        self.worst = max(self.ratios)
        self.worst_name = self.names[self.ratios.index(self.worst)]

    def __str__(self):
        return f"{self.mean:.2f}" + (f" {interval(self.low, self.high)}" if len(self.ratios) > 1 else "")

    def record(self):
        return f"{self.won} / {self.tied} / {self.lost}"


def interval(low, high):
    """A bound that two digits would put on 1 has more when the interval does not hold 1."""
    apart = low > 1 or high < 1
    return "[" + ", ".join(f"{one:.3f}" if apart and f"{one:.2f}" == "1.00" else f"{one:.2f}" for one in (low, high)) + "]"


def paired(results, policy, baseline, key=("scenario", "workload", "workers", "seed")):
    """Time of one policy over another's on the same jobs. `results` as `dynamix evaluate --json` lists them."""
    job = lambda one: tuple(one[field] for field in key)  # noqa: E731
    base = {job(one): one for one in results if one["policy"] == baseline}
    own = [one for one in results if one["policy"] == policy and job(one) in base]
    return Ratio([one["time_to_target_s"] / base[job(one)]["time_to_target_s"] for one in own],
                 [f"{one['scenario']}, seed {one['seed']}" for one in own])


def result_of(one):
    """What is kept of a job's result."""
    kept = {field: one[field] for field in ("scenario", "workload", "workers", "policy", "seed", "reached")}
    return {**kept, "time_to_target_s": round(one["time_to_target_s"], 3)}


def policies_of(results):
    return list(dict.fromkeys(one["policy"] for one in results))


def seconds(results):
    """Geometric mean of times; a star when a target was missed, which counts with the whole time budget."""
    mean = geometric([one["time_to_target_s"] for one in results])
    return f"{mean:.3g}{star(results)}"


def star(results):
    return "" if all(one["reached"] for one in results) else "*"


def reached(results):
    return f"{sum(one['reached'] for one in results)} of {len(results)}"


def table(header, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def prose(text):
    return textwrap.fill(" ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False)


def sentence(text):
    """With its first letter large."""
    return text[:1].upper() + text[1:]


def code(name):
    return f"`{name}`"


def row_of(name, ratio, color=None):
    """A row of a chart, of a Ratio."""
    row = {"name": name, "mean": ratio.mean, "low": ratio.low, "high": ratio.high,
           "dots": [{"ratio": one, "name": f"{one:.3f}, {what}"} for one, what in zip(ratio.ratios, ratio.names)]}
    return row if color is None else {**row, "color": color}


def chart(title, left, rows, right="slower"):
    return {"title": title, "left": left, "right": right, "rows": rows}


def list_of(items):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else "none"
