"""The target-entropy schedule of TES-SAC (Xu et al., 2021), in plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Counting = Literal["consecutive", "cumulative"]


@dataclass
class EntropyTarget:
    """A target for the policy's entropy, lowered each time the entropy rests on it.

    The entropy's exponential moving mean and variance are followed step by step. A
    step is calm if the mean is close to the target and the deviation is small. After
    `period` calm steps the target is multiplied by `discount` and the count starts
    again. The rule `consecutive` starts the count again on any step that is not calm;
    `cumulative` only pauses it.
    """

    target: float  # in nats
    decay: float
    mean_threshold: float
    std_threshold: float
    discount: float
    period: int
    counting: Counting
    mean: float | None = None  # starts at the target
    variance: float = 0.0
    calm_steps: int = 0

    def __post_init__(self) -> None:
        if self.mean is None:
            self.mean = self.target

    @property
    def is_calm(self) -> bool:
        """Whether the entropy rests on the target."""
        return (
            abs(self.mean - self.target) <= self.mean_threshold
            and math.sqrt(self.variance) <= self.std_threshold
        )

    def update(self, entropy: float) -> float:
        """Takes the mean entropy of one minibatch, returns the target from now on."""
        deviation = entropy - self.mean
        self.mean += (1 - self.decay) * deviation
        self.variance = self.decay * (self.variance + (1 - self.decay) * deviation**2)
        if self.is_calm:
            self.calm_steps += 1
        elif self.counting == "consecutive":
            self.calm_steps = 0
        if self.calm_steps >= self.period:
            self.target *= self.discount
            self.calm_steps = 0
        return self.target
