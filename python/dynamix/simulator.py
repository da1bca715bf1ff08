"""Simulated jobs: a vector environment to learn in, and comparisons of policies.

The environment has Gymnasium's signatures. With gymnasium installed it is a
gymnasium.vector.VectorEnv; without it, it works the same with the small spaces of this module.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from dynamix import _check, _core

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import VectorEnv as _Base
except ImportError:
    gymnasium = None
    from dynamix import _spaces as spaces

    class _Base:
        """What a learner expects of gymnasium.vector.VectorEnv."""

        spec = None
        render_mode = None

        @property
        def unwrapped(self):
            return self

__all__ = ["VectorEnv", "compare", "evaluate"]


def _autoreset_mode():
    try:
        return gymnasium.vector.AutoresetMode.SAME_STEP
    except AttributeError:  # no gymnasium, or one before 1.1
        return "SameStep"


class VectorEnv(_Base):
    """`num_envs` simulated jobs of `workers` workers each, in lock step. One step is one window of
    every job.

    observation  {"team": num_envs x features, "local": num_envs x workers x features}; what was not
                 measured is `missing`. `team_columns` and `local_columns` name the features.
    action       num_envs x (1 + workers) numbers from 0 to 4: of the team, which scales the global
                 batch, then of each worker, which moves its share; 2 holds. `actions` names the set
                 (docs/learning.md).
    reward       of the team, as DYNAMIX's own learner gets it
    terminated   the job reached its target, or can no longer reach it
    truncated    its time is over
    info         "action_mask" (num_envs x (1 + workers) x 5), "seconds" (length of the window), and
                 for jobs that ended "final_obs" with the mask "_final_obs"

    A job that ends is followed by a new one in the same step. `kind` is "training", "validation" or
    "held_out"; `miniature_share` of the jobs train real small networks (slower), the others are
    noisy quadratics.

    >>> envs = VectorEnv(2, workers=4, tasks=2)
    >>> observation, info = envs.reset(seed=1)
    >>> observation["local"].shape[:2]
    (2, 4)
    >>> hold = numpy.full((2, 5), 2)
    >>> observation, reward, terminated, truncated, info = envs.step(hold)
    >>> reward.shape, bool(terminated.any())
    ((2,), False)
    """

    metadata = {"render_modes": [], "autoreset_mode": _autoreset_mode()}

    def __init__(self, num_envs: int, *, workers: int = 8, kind: str = "training",
                 miniature_share: float = 0.0, tasks: int = 256,
                 actions: str = "anchored,share,team+local", seed: int = 1, threads: int = 2,
                 missing: float = 0.0) -> None:
        self.num_envs = num_envs = _check.whole("num_envs", num_envs, 1, 10000)
        workers = _check.whole("workers", workers, 1, 4096)
        self.closed = False
        self._workers, self._missing, self._seed = workers, missing, seed
        self._all = _core.VectorEnvironment(
            environments=num_envs, workers=workers, kind=kind, miniature_share=miniature_share,
            tasks=tasks, actions=actions, seed=seed, threads=threads)
        self.team_columns, self.local_columns = _core.team_columns(), _core.local_columns()
        team, local = len(self.team_columns), len(self.local_columns)
        self.single_observation_space = self._observations((team,), (workers, local))
        self.observation_space = self._observations((num_envs, team), (num_envs, workers, local))
        actions_each = numpy.full(1 + workers, _core.ACTIONS)
        self.single_action_space = spaces.MultiDiscrete(actions_each)
        self.action_space = spaces.MultiDiscrete(numpy.tile(actions_each, (num_envs, 1)))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """A new job in every environment. Without a seed, other jobs than before."""
        self._seed = self._seed + 1 if seed is None else seed
        self._all.reset(self._seed)
        return self._see(self._all.team, self._all.local), {"action_mask": self._mask()}

    def step(self, actions):
        actions = numpy.asarray(actions)
        if actions.shape != (self.num_envs, 1 + self._workers):
            raise _core.InputError(f"actions = shape {actions.shape} is not allowed: expected "
                                   f"{(self.num_envs, 1 + self._workers)}")
        result = self._all.step(actions[:, 0], actions[:, 1:])
        terminated, truncated = result["terminated"].astype(bool), result["truncated"].astype(bool)
        info = {"action_mask": self._mask(), "seconds": result["seconds"]}
        ended = terminated | truncated
        if ended.any():
            final = self._see(result["final_team"], result["final_local"])
            info["final_obs"] = numpy.array(
                [{name: rows[i] for name, rows in final.items()} if end else None
                 for i, end in enumerate(ended)], dtype=object)
            info["_final_obs"] = ended
        return (self._see(self._all.team, self._all.local), result["reward"], terminated, truncated,
                info)

    def round(self, environment):
        """The reports behind one environment's observation, for policies: Policy and rules decide
        on rounds."""
        return self._all.round(environment)

    def close(self, **kwargs):
        self.closed = True

    def _mask(self):
        return numpy.concatenate([self._all.team_mask[:, None], self._all.local_mask], axis=1)

    def _see(self, team, local):
        return {"team": self._fill(team), "local": self._fill(local)}

    def _fill(self, rows):
        return numpy.where(numpy.isnan(rows), numpy.float32(self._missing), rows)

    @staticmethod
    def _observations(team, local):
        def box(shape):
            return spaces.Box(-numpy.inf, numpy.inf, shape, numpy.float32)

        return spaces.Dict({"team": box(team), "local": box(local)})


def evaluate(policies: Iterable[Any], suite: str = "heterogeneous_4x", *,
             workloads: Sequence[str] = (), workers: Sequence[int] = (), seeds: int = 3,
             threads: int = 2) -> list[_core.JobResult]:
    """Runs every policy on every simulated job of a suite (a scenario, or a folder of them). Policies
    are names, files, objects with decide(round, states), or classes of such. Returns a list of
    JobResult: policy, scenario, workload, workers, seed, time_to_target_s, reached, accuracy."""
    policies = list(policies)
    if not policies:
        raise _check.refused("policies", policies, "at least one")
    return _core.evaluate(policies, suite, list(workloads), list(workers), seeds, threads)


def compare(policies: Iterable[Any], suite: str = "heterogeneous_4x",
            **options: Any) -> dict[str, float]:
    """Mean time to target of each policy relative to the first one's, on the same jobs: 0.8 is a
    fifth less. Takes what `evaluate` takes. A job whose target was missed counts with its budget."""
    results = evaluate(policies, suite, **options)
    times = {}
    for result in results:
        job = (result.scenario, result.workload, result.workers, result.seed)
        times.setdefault(result.policy, {})[job] = result.time_to_target_s
    first = next(iter(times.values()))
    return {policy: float(numpy.exp(numpy.mean([numpy.log(own[job] / first[job]) for job in first])))
            for policy, own in times.items()}
