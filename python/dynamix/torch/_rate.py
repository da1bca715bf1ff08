"""A learning-rate rule on top of the user's optimizer and scheduler.

The factor multiplies every group's rate for the length of one optimizer.step() and is taken back
after it, so that a scheduler, a checkpoint and a log see the user's own rates.
"""
import types

import torch

# Adaptive optimizers without Adam's betas.
_ADAPTIVE = tuple(getattr(torch.optim, name) for name in ("Adadelta", "Adagrad", "RMSprop", "Rprop"))


def is_adaptive(optimizer):
    """The optimizer scales every weight's step by itself."""
    return isinstance(optimizer, _ADAPTIVE) or any("betas" in g for g in optimizer.param_groups)


def base_rate(optimizer):
    """Of the first group, as the job was configured; a scheduler keeps it as initial_lr."""
    group = optimizer.param_groups[0]
    return float(group.get("initial_lr", group["lr"]))


class RateRule:
    def __init__(self, optimizer):
        self._optimizer = optimizer
        self._own = None  # the groups' rates during a step
        self.factor = 1.0
        if hasattr(optimizer, "register_step_pre_hook"):  # PyTorch 2.0
            optimizer.register_step_pre_hook(lambda *_: self._raise())
            optimizer.register_step_post_hook(lambda *_: self._lower())
        else:
            self._wrap_step()

    def rate(self):
        return float(self._optimizer.param_groups[0]["lr"]) * self.factor

    def _raise(self):
        self._lower()  # a step that threw left the rates raised
        if self.factor == 1.0:
            return
        self._own = [group["lr"] for group in self._optimizer.param_groups]
        for group in self._optimizer.param_groups:
            group["lr"] = group["lr"] * self.factor

    def _lower(self):
        if self._own is not None:
            for group, rate in zip(self._optimizer.param_groups, self._own):
                group["lr"] = rate
        self._own = None

    def _wrap_step(self):
        inner = self._optimizer.step

        def step(_, *arguments, **options):
            self._raise()
            try:
                return inner(*arguments, **options)
            finally:
                self._lower()

        # Schedulers look for this mark, and wrap the bound method themselves when they come later.
        if hasattr(inner, "_with_counter"):
            step._with_counter = True
        self._optimizer.step = types.MethodType(step, self._optimizer)
