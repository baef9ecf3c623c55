"""Cloning: on long-term rows the agent stays near what it thought when it acted.

After CLEAR (Rolnick et al. 2019, "Experience Replay for Continual Learning"): the
policy is pulled towards the one that acted at a row, by the KL between them, and the
value towards the value that it had then, by their squared distance (here in symlog).
Both are remembered with the row, as float16, and count as bytes of the memory.

A row's action was drawn at its observation, and so were the probabilities and the value
that are remembered with it: they belong to the posterior state of the same row. Off by
one row, a skill would be destroyed by cloning its own success.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rllib_arrow.algorithms.dv3.objectives import Metrics, autocast
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.distributions import two_hot_symlog

SMALLEST = 1e-6  # of probabilities whose logarithm is taken


def cloning_losses(
    probs: Tensor, values: Tensor, policy: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the mean KL to the policies of then, and the values' mean distance.

    Args:
        probs: [..., num_actions], of the actor now.
        values: [...], of the critic now, in symlog.
        policy: [..., num_actions + 1], of then; zeros where there is nothing to clone.
    """
    then, value_then = policy[..., :-1].float(), policy[..., -1].float()
    is_told = (then.sum(-1) > 0.5).float()
    log_ratio = then.clamp(min=SMALLEST).log() - probs.log()
    kl = (then * log_ratio).sum(-1).mean()
    return kl, (is_told * (values - value_then).square()).mean()


def cloning_loss(
    net: DV3RLModule, config: Any, states: Tensor, policy: Tensor
) -> tuple[Tensor, Metrics]:
    """Returns the weighted sum for states [T, B, state_units] of replayed rows."""
    with autocast(config, states.device):
        probs = net.actor(states)
        value_logits = net.critic(states)
    kl, distance = cloning_losses(probs, two_hot_symlog(value_logits), policy)
    loss = config.cloning_scale * kl + config.cloning_value_scale * distance
    metrics = {"cloning_kl": kl.detach(), "cloning_distance": distance.detach()}
    return loss, metrics
