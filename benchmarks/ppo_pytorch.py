#!/usr/bin/python3
"""A minimal batched PyTorch PPO with the shapes of ppo_bench.cc, written as one writes it in PyTorch: 64 environments x
128 steps, 16 inputs, 5 actions, two 64-64 tanh towers, 4 epochs of 4 minibatches, one thread.

Prints one JSON object {"pytorch_steps_per_s": value}: the median over the turns.

usage: ppo_pytorch.py [SECONDS_PER_TURN]
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.distributions import Categorical

ROWS, STEPS, INPUTS, ACTIONS, EPOCHS, MINIBATCHES = 64, 128, 16, 5, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.01, 0.5


def tower(outputs, gain):
    layers = [nn.Linear(INPUTS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, 2 ** 0.5)
        nn.init.zeros_(layer.bias)
    nn.init.orthogonal_(layers[-1].weight, gain)
    return nn.Sequential(*layers)


class Learner:
    def __init__(self):
        self.policy, self.value = tower(ACTIONS, 0.01), tower(1, 1.0)
        self.parameters = [*self.policy.parameters(), *self.value.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=3e-4, eps=1e-5)
        self.observation = torch.rand(ROWS, INPUTS)
        self.observations = torch.zeros(STEPS, ROWS, INPUTS)
        self.actions = torch.zeros(STEPS, ROWS, dtype=torch.long)
        self.log_probs = torch.zeros(STEPS, ROWS)
        self.values = torch.zeros(STEPS + 1, ROWS)
        self.rewards = torch.zeros(STEPS, ROWS)

    @torch.no_grad()
    def rollout(self):
        for t in range(STEPS):
            self.observations[t] = self.observation
            distribution = Categorical(logits=self.policy(self.observation))
            action = distribution.sample()
            self.actions[t], self.log_probs[t] = action, distribution.log_prob(action)
            self.values[t] = self.value(self.observation).squeeze(1)
            self.rewards[t] = action == (self.observation[:, 0] * ACTIONS).long()
            self.observation = torch.rand(ROWS, INPUTS)
        self.values[STEPS] = self.value(self.observation).squeeze(1)
        advantages, carry = torch.zeros(STEPS, ROWS), torch.zeros(ROWS)
        for t in reversed(range(STEPS)):
            delta = self.rewards[t] + GAMMA * self.values[t + 1] - self.values[t]
            carry = delta + GAMMA * LAMBDA * carry
            advantages[t] = carry
        return advantages.flatten(), (advantages + self.values[:STEPS]).flatten()

    def update(self, advantages, returns):
        observations, actions = self.observations.flatten(0, 1), self.actions.flatten()
        log_probs = self.log_probs.flatten()
        for _ in range(EPOCHS):
            for rows in torch.randperm(STEPS * ROWS).chunk(MINIBATCHES):
                distribution = Categorical(logits=self.policy(observations[rows]))
                ratio = (distribution.log_prob(actions[rows]) - log_probs[rows]).exp()
                a = advantages[rows]
                a = (a - a.mean()) / (a.std() + 1e-8)
                policy_loss = torch.max(-a * ratio, -a * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                value_loss = 0.5 * (self.value(observations[rows]).squeeze(1) - returns[rows]).square().mean()
                loss = policy_loss + VALUE * value_loss - ENTROPY * distribution.entropy().mean()
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters, 0.5)
                self.optimizer.step()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
    torch.set_num_threads(1)
    torch.manual_seed(1)
    Categorical.set_default_validate_args(False)
    learner = Learner()
    learner.update(*learner.rollout())
    rates = []
    for _ in range(5):
        start, passes = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            learner.update(*learner.rollout())
            passes += 1
        rates.append(passes * STEPS * ROWS / (time.perf_counter() - start))
    print(json.dumps({"pytorch_steps_per_s": statistics.median(rates)}))


if __name__ == "__main__":
    main()
