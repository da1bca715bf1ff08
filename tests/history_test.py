#!/usr/bin/env python3
"""The checker of histories notices what it is there for: a good history passes, and every way to spoil it is named."""
import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import history  # noqa: E402


def good():
    """One rank that joins, is advised twice, loses the arbitrator once and is welcomed by the next one."""
    call = {"incarnation": 7, "batch": 16, "low": 4, "high": 64}
    events = [
        {"event": "train", "first": 0, "count": 16},
        {"event": "join", **call, "epoch": 0, "window": 0},
        {"event": "welcome", "epoch": 3},
        {"event": "report", **call, "epoch": 3, "window": 0},
        {"event": "advice", "epoch": 3, "window": 0, "batch": 32, "valid": 1},
        {"event": "use", "window": 0, "before": 16, "batch": 32},
        {"event": "train", "first": 16, "count": 32},
        {"event": "report", **call, "epoch": 3, "window": 1},
        {"event": "failure"},
        {"event": "join", **call, "epoch": 3, "window": 1},
        {"event": "welcome", "epoch": 4},
        {"event": "report", **call, "epoch": 4, "window": 1},
        {"event": "advice", "epoch": 4, "window": 1, "batch": None, "valid": 1},
        {"event": "train", "first": 48, "count": 32},
    ]
    return [{"t": t, "rank": 0, **event} for t, event in enumerate(events)]


class HistoryTest(unittest.TestCase):
    def spoiled(self, rule, spoil, planned=80):
        events = copy.deepcopy(good())
        spoil(events)
        with self.assertRaisesRegex(history.Violation, rule):
            history.check([events], planned)

    def test_a_good_history_passes(self):
        self.assertEqual(history.check([good()], 80), 2)

    def test_two_answers_to_one_question(self):
        self.spoiled("an answer follows its question", lambda events: events.insert(5, {**events[4], "t": 4.5}))

    def test_a_window_is_answered_twice(self):
        def spoil(events):
            events[5:5] = [{**events[3], "t": 4.2}]
        self.spoiled("no question after its answer", spoil)

    def test_the_answer_to_another_window(self):
        self.spoiled("for the window that was asked", lambda events: events[4].update(window=5))

    def test_an_epoch_that_goes_back(self):
        self.spoiled("highest epoch", lambda events: events[11].update(epoch=3))

    def test_advice_of_a_stale_arbitrator_is_used(self):
        def spoil(events):
            events[4]["epoch"] = 2
        self.spoiled("by advice only", spoil)

    def test_advice_outside_of_the_bounds(self):
        self.spoiled("outside of the bounds", lambda events: events[4].update(batch=65))

    def test_advice_that_is_too_old_is_used(self):
        self.spoiled("only while it is valid", lambda events: events[5].update(window=2))

    def test_a_batch_nobody_advised(self):
        self.spoiled("towards its advice", lambda events: events[5].update(batch=33))

    def test_a_leap(self):
        def spoil(events):
            events[4]["batch"] = events[5]["batch"] = 64
            events[5]["before"] = 12
        self.spoiled("limited factor", spoil)

    def test_a_process_that_changes_its_incarnation(self):
        self.spoiled("one incarnation", lambda events: events[7].update(incarnation=8))

    def test_a_later_process_with_an_older_incarnation(self):
        later = [{**event, "incarnation": 6} if "incarnation" in event else event for event in good()]
        with self.assertRaisesRegex(history.Violation, "incarnations go up"):
            history.check([good(), later], 80)

    def test_samples_trained_twice_or_never(self):
        self.spoiled("exactly once", lambda events: events[6].update(first=15))
        self.spoiled("exactly once", lambda events: events[6].update(first=17))
        self.spoiled("all planned samples", lambda events: None, planned=81)


if __name__ == "__main__":
    unittest.main()
