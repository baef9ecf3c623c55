"""What an update computes, from the networks' outputs to the losses."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.sac.sac_learner import (
    ACTION_LOG_PROBS,
    ACTION_LOG_PROBS_NEXT,
    ACTION_PROBS,
    ACTION_PROBS_NEXT,
    QF_PREDS,
    QF_TARGET_NEXT,
    QF_TWIN_PREDS,
)
from ray.rllib.core.columns import Columns
from torch import Tensor

from rllib_arrow.algorithms.tes_sac import losses
from rllib_arrow.algorithms.tes_sac.rl_module import RAW_LOGITS
from rllib_arrow.algorithms.tes_sac.transitions import WEIGHTS

Values = dict[str, Tensor]


def all_losses(
    fwd_out: Values,
    batch: Values,
    log_alpha: Tensor,
    target_entropy: Tensor,
    config: Any,
) -> tuple[Values, Values]:
    """Returns the losses by name, and what else is worth knowing of the update."""
    weights, alpha = batch[WEIGHTS], log_alpha.detach().exp()
    q, q_twin = fwd_out[QF_PREDS], fwd_out[QF_TWIN_PREDS]
    policy = fwd_out[ACTION_PROBS], fwd_out[ACTION_LOG_PROBS]
    actions, targets = batch[Columns.ACTIONS], _targets(fwd_out, batch, alpha, config)
    entropy = losses.mean_entropy(*policy, weights)
    parts = {
        "qf_loss": losses.critic_loss(q, actions, targets, weights),
        "qf_twin_loss": losses.critic_loss(q_twin, actions, targets, weights),
        "policy_loss": losses.policy_loss(
            *policy, torch.minimum(q, q_twin), alpha, weights
        ),
        "gap_cost": losses.gap_cost(fwd_out[RAW_LOGITS], config.max_logit_gap, weights),
        "alpha_loss": losses.alpha_loss(log_alpha, entropy, target_entropy),
    }
    measured = {
        "entropy": entropy,
        "logit_gap": losses.weighted_mean(losses.spread(policy[1].detach()), weights),
        "qf_mean": losses.weighted_mean(q.detach().mean(-1), weights),
        "qf_gap": losses.weighted_mean(losses.spread(q.detach()), weights),
        "transitions": weights.sum(),
        "alpha_value": alpha.squeeze(0),
        "target_entropy": target_entropy,
    }
    return parts, measured


@torch.no_grad()
def _targets(fwd_out: Values, batch: Values, alpha: Tensor, config: Any) -> Tensor:
    """Returns what the critics should have said, [B]."""
    next_values = losses.soft_values(
        fwd_out[QF_TARGET_NEXT],
        fwd_out[ACTION_PROBS_NEXT],
        fwd_out[ACTION_LOG_PROBS_NEXT],
        alpha,
    )
    rewards, terminated = batch[Columns.REWARDS], batch[Columns.TERMINATEDS]
    return losses.q_targets(rewards, terminated, next_values, config.gamma)
