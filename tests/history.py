"""What the ranks of a job did and heard (advised_job history=FILE), and whether that may happen.

One JSON object per line, with the time `t`, the `rank` and the `event`:
    join      incarnation, epoch (highest heard), window     a call ...
    welcome   epoch                                          ... and its answer
    report    incarnation, epoch, window, batch, low, high   a call ...
    advice    epoch, window, batch (or null), valid          ... and its answer
    failure                                                  the call got no answer, or was refused
    use       window (the newest reported), before, batch    the batch changes, all ranks in one iteration
    train     first, count                                   samples of one iteration
"""
import json
import pathlib

MAX_FACTOR = 4  # of a batch per window


class Violation(Exception):
    pass


def require(condition, rule, *evidence):
    if not condition:
        raise Violation(f"{rule}: {' '.join(json.dumps(one) for one in evidence)}")


def read(path):
    lines = pathlib.Path(path).read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]  # a process that was killed leaves half a line


class Rank:
    """One rank of one process, event after event."""

    def __init__(self):
        self.call, self.incarnation, self.epoch, self.window = None, None, 0, -1
        self.last_advice, self.answered = None, set()

    def take(self, event):
        getattr(self, event["event"])(event)

    def _ask(self, event):
        require(self.call is None, "a call begins after the one before has ended", self.call, event)
        require(self.incarnation in (None, event["incarnation"]), "a process has one incarnation", event)
        require(event["epoch"] == self.epoch, "a worker says the highest epoch it heard", self.epoch, event)
        self.incarnation, self.call = event["incarnation"], event

    def _answer(self, event, question):
        require(self.call and self.call["event"] == question, "an answer follows its question", self.call, event)
        self.call = None

    def join(self, event):
        self._ask(event)

    def welcome(self, event):
        self._answer(event, "join")
        self.epoch = max(self.epoch, event["epoch"])

    def report(self, event):
        require(event["window"] >= self.window, "windows go up", self.window, event)
        require(event["window"] not in self.answered, "no question after its answer", event)
        self._ask(event)
        self.window = event["window"]

    def advice(self, event):
        asked = self.call
        self._answer(event, "report")
        if event["epoch"] < self.epoch:
            return  # of an arbitrator that was replaced: must not be used
        require(event["window"] == asked["window"], "an answer is for the window that was asked about", asked, event)
        require(event["window"] not in self.answered, "one answer per window and worker", event)
        self.answered.add(event["window"])
        self.epoch = event["epoch"]
        if event["batch"] is not None:
            require(asked["low"] <= event["batch"] <= asked["high"], "no advice outside of the bounds", asked, event)
            self.last_advice = event

    def failure(self, event):
        require(self.call is not None, "what fails was asked", event)
        self.call = None

    def use(self, event):
        advice = self.last_advice
        require(advice is not None, "a batch changes by advice only", event)
        age = event["window"] - advice["window"]
        require(0 <= age <= advice["valid"], "advice is used only while it is valid", advice, event)
        before = event["before"]
        low, high = sorted((before, advice["batch"]))
        require(low <= event["batch"] <= high, "a batch moves towards its advice, not beyond", advice, event)
        require(before / MAX_FACTOR - 0.5 <= event["batch"] <= before * MAX_FACTOR + 0.5,  # whole samples
                "a batch moves by a limited factor", event)

    def train(self, event):
        pass


def check_samples(events, planned):
    """Every planned sample was trained exactly once: the ranges follow each other without gap or overlap."""
    ranges = sorted((event["first"], event["count"]) for event in events if event["event"] == "train")
    end = 0
    for first, count in ranges:
        require(first == end, "every planned sample is trained exactly once", {"expected": end, "first": first, "count": count})
        end = first + count
    require(end >= planned, "all planned samples are trained", {"trained": end, "planned": planned})


def until_last_call(events):
    """Of a process that was killed: what it did after its last recorded call may rest on one that was not recorded."""
    last = {}
    for event in events:
        if event["event"] not in ("use", "train"):
            last[event["rank"]] = max(event["t"], last.get(event["rank"], 0))
    return [event for event in events if event["t"] <= last.get(event["rank"], 0)]


def check(processes, planned):
    """`processes` are the events of each process that ran the job, one after another; all but the last were killed. Raises
    Violation; returns how many answers there were."""
    incarnations, answers = {}, 0
    processes = [until_last_call(events) for events in processes[:-1]] + processes[-1:]
    for events in processes:
        ranks = {}
        for event in sorted(events, key=lambda event: event["t"]):
            ranks.setdefault(event["rank"], Rank()).take(event)
            answers += event["event"] == "advice"
        for number, rank in ranks.items():
            require(rank.incarnation is None or rank.incarnation > incarnations.get(number, 0), "incarnations go up", number)
            incarnations[number] = rank.incarnation or incarnations.get(number, 0)
    check_samples(processes[-1], planned)
    return answers
