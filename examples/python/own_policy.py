#!/usr/bin/python3
"""A policy of one's own in ten lines, compared with a rule and the shipped policy on simulated jobs.

    /usr/bin/python3 examples/python/own_policy.py
"""
import argparse

import dynamix.simulator


class Halfway:
    """Shares by measured speed, and the global batch half way to the noise scale."""

    name = "halfway"

    def decide(self, round, states):
        noise = round.numbers("training.noise_scale")[0]
        target = (round.global_batch * noise) ** 0.5 if noise > 0 else round.global_batch
        step = min(max(target / round.global_batch, 0.8), 1.25)
        return states.shares * round.global_batch * step


flags = argparse.ArgumentParser()
flags.add_argument("--suite", default="heterogeneous_4x")
flags.add_argument("--seeds", type=int, default=3)
flags.add_argument("--workers", type=int, default=8)
flags = flags.parse_args()
times = dynamix.simulator.compare(["static", "balanced", Halfway, "default"], flags.suite,
                                  workers=[flags.workers], seeds=flags.seeds)
for policy, ratio in times.items():
    print(f"{policy:10}  {ratio:.2f} of static's time to target")
# The same object drives a live job:  dynamix.torch.adapt(model, ..., policy=Halfway())
