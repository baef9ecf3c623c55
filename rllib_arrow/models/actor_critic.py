"""The actor and the critic: heads on the model state [h, z]."""

from __future__ import annotations

import torch
from torch import Tensor

from rllib_arrow.models.distributions import BINS, unimix_probs
from rllib_arrow.models.layers import MLP
from rllib_arrow.models.size import ModelSize

OUTPUT_SCALE = 0.01  # of the actor's last weights, as in DreamerV3 since 2024


class Actor(MLP):
    """A stochastic policy over discrete actions, with 1 % of uniform mixed in.

    It starts as good as uniform, like the random policy of epoch 0. Otherwise chance
    decides which actions the first epochs hardly try.
    """

    def __init__(self, size: ModelSize, num_actions: int) -> None:
        super().__init__(size.state, size.mlp_units, size.mlp_layers, num_actions)
        with torch.no_grad():
            self[-1].weight.mul_(OUTPUT_SCALE)

    def forward(self, states: Tensor) -> Tensor:
        """Takes [..., state_units], returns probabilities [..., num_actions]."""
        return unimix_probs(self.logits(states))

    def logits(self, states: Tensor) -> Tensor:
        """Takes [..., state_units], returns what the policy is without the mix."""
        return super().forward(states)


class TwoHotHead(MLP):
    """Two-hot logits of a number; starts by saying zero everywhere."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__(
            size.state, size.mlp_units, size.mlp_layers, BINS, zero_output=True
        )
