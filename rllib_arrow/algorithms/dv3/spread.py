"""Advantages divided by how far returns spread from a state, instead of one range.

One running range of returns serves tasks whose rewards have one size. Where rewards of
two tasks differ a hundredfold, the range is the larger one's, and the smaller one's
advantages vanish. Here a linear head learns how far returns lie from the value, from
the state alone, two-hot as the critic does: no task is named and no constant
calibrated. It does per state what PopArt (van Hasselt et al. 2016, "Learning values
across many orders of magnitude") does per task, and leaves the critic alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rllib_arrow.algorithms.dv3.objectives import Metrics, ValuedDream, autocast
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.distributions import two_hot_loss, two_hot_mean

# From the 5th to the 95th percentile of a normal distribution, in its mean distances
# from the middle: what DreamerV3 divides by is such a range.
RANGE = 4.12


def spread_loss(
    net: DV3RLModule, config: Any, states: Tensor, valued: ValuedDream
) -> tuple[Tensor, Tensor, Metrics]:
    """Returns the head's loss, and what to divide advantages by: [H, N].

    Args:
        net, config: Of the learner.
        states: [H, N, state_units], a dream's without the last.
        valued: What is known of them.
    """
    with autocast(config, states.device):
        logits = net.spread_head(states)
    distances = (valued.returns - valued.values[:-1]).abs()
    loss = (valued.weights * two_hot_loss(logits, distances)).mean()
    with torch.no_grad():
        scale = RANGE * two_hot_mean(logits)
        scale = scale.clamp(min=config.advantage_floor)
    metrics = {"spread_loss": loss.detach(), "return_spread": scale.mean()}
    return loss, scale, metrics
