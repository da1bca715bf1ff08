"""The small real job of the command tests, and how to catch it in time."""

ATTEMPTS = 12


def workload(base_batch=16, planned_samples=2400, accuracy=0.99, optimizer="", more=""):
    """A workload file: an MLP on Fashion-MNIST, a second of training. The last two are further lines."""
    return f"""
{more}
[model]
name = "mlp"
width = 0.1
dataset = "fashion_mnist"
[optimizer]
learning_rate = 0.05
base_batch = {base_batch}
planned_samples = {planned_samples}
{optimizer}
[convergence]
engine = "quadratic"
[target]
accuracy = {accuracy}
"""


# Every iteration takes 10 ms at least, so that there is time to interfere.
PACED = """
start_batch = 8
workers = 2
time_budget = 1000
[[node]]
overhead_ms = 10
"""


def first_in_time(attempt):
    """What attempt(number) returns, the first time that is not None. A test that must do something to a job before the job
    ends may be too late on a busy machine: then it was no trial, and another one is made."""
    for number in range(ATTEMPTS):
        if (result := attempt(number)) is not None:
            return result
    raise AssertionError(f"never in time, in {ATTEMPTS} attempts")
