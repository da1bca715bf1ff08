"""DYNAMIX chooses each worker's batch size while a distributed job trains.

    dynamix.torch       adaptive DistributedDataParallel in two lines
    dynamix.Worker      reports and advice for any other training loop
    dynamix.Policy      a policy that decides on numpy arrays
    dynamix.simulator   simulated jobs as a vector environment, and comparisons of policies
    dynamix.Recorder    a run's folder, for dynamix report
    dynamix.read_run    a recorded run as numpy arrays
    dynamix.comparison  a table of recorded runs
"""
from dynamix._core import Actions, InputError, Round, Sampler, States
from dynamix._policy import Policy
from dynamix._record import Recorder
from dynamix._runs import Run, comparison, read_run
from dynamix._worker import Worker

__all__ = ["Actions", "InputError", "Policy", "Recorder", "Round", "Run", "Sampler", "States",
           "Worker", "comparison", "read_run"]
