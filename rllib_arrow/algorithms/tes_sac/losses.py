"""The losses of soft actor-critic for discrete actions, as expectations.

Shapes: B transitions, A actions. `weights` is 1 for transitions and 0 for pairs of
rows that belong to two episodes; means run over the former alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

GAP_COST = 0.01  # of a logit one too far; small against the values it competes with


def weighted_mean(values_B: Tensor, weights_B: Tensor) -> Tensor:
    """Returns the mean over the transitions that count; 0 if none does."""
    return (values_B * weights_B).sum() / weights_B.sum().clamp(min=1.0)


def soft_values(
    q_B_A: Tensor, probs_B_A: Tensor, log_probs_B_A: Tensor, alpha: Tensor
) -> Tensor:
    """Returns the expected action value plus alpha times the entropy, [B]."""
    return (probs_B_A * (q_B_A - alpha * log_probs_B_A)).sum(-1)


def q_targets(
    rewards_B: Tensor, terminated_B: Tensor, next_values_B: Tensor, gamma: float
) -> Tensor:
    """Returns [B]: the reward alone where the episode terminated, else bootstrapped.

    A truncated episode's last transition is not terminated and so is bootstrapped.
    """
    return rewards_B + gamma * (1.0 - terminated_B) * next_values_B


def critic_loss(
    q_B_A: Tensor, actions_B: Tensor, targets_B: Tensor, weights_B: Tensor
) -> Tensor:
    """Returns the Huber loss of the values of the actions taken, as RLlib's SAC."""
    taken_B = q_B_A.gather(-1, actions_B.unsqueeze(-1)).squeeze(-1)
    errors_B = F.huber_loss(taken_B, targets_B, reduction="none")
    return weighted_mean(errors_B, weights_B)


def policy_loss(
    probs_B_A: Tensor,
    log_probs_B_A: Tensor,
    q_B_A: Tensor,
    alpha: Tensor,
    weights_B: Tensor,
) -> Tensor:
    """Returns minus the soft value under the policy; Q and alpha are constants."""
    values_B = soft_values(q_B_A.detach(), probs_B_A, log_probs_B_A, alpha.detach())
    return -weighted_mean(values_B, weights_B)


def mean_entropy(probs_B_A: Tensor, log_probs_B_A: Tensor, weights_B: Tensor) -> Tensor:
    """Returns the policy's mean entropy in nats, without gradient."""
    entropy_B = -(probs_B_A.detach() * log_probs_B_A.detach()).sum(-1)
    return weighted_mean(entropy_B, weights_B)


def alpha_loss(log_alpha: Tensor, entropy: Tensor, target_entropy: Tensor) -> Tensor:
    """Returns a loss that lowers alpha while the entropy is above its target."""
    return (log_alpha * (entropy - target_entropy)).sum()


def within_gap(logits_B_A: Tensor, max_gap: float | None) -> Tensor:
    """Returns logits scaled down where the largest and the smallest differ by more.

    A softmax of logits that lie far apart is certain, and its gradient is zero: nothing
    that is learned about the other actions could bring them back. The scale is a
    constant to the gradient, or the outermost two actions could not approach.
    """
    if max_gap is None:
        return logits_B_A
    gap_B_1 = spread(logits_B_A.detach()).unsqueeze(-1)
    return logits_B_A * (max_gap / gap_B_1.clamp(min=max_gap))


def gap_cost(logits_B_A: Tensor, max_gap: float | None, weights_B: Tensor) -> Tensor:
    """Returns what logits cost that `within_gap` has to scale down; 0 without a limit.

    Behind the scale nothing else would hold them: they grew a thousandfold, and what
    is learned could hardly turn them any more.
    """
    if max_gap is None:
        return weights_B.new_zeros(())
    excess_B = (spread(logits_B_A) - max_gap).clamp(min=0.0)
    return GAP_COST * weighted_mean(excess_B**2, weights_B)


def spread(values_B_A: Tensor) -> Tensor:
    """Returns how far the largest value over the actions is from the smallest, [B]."""
    return values_B_A.amax(-1) - values_B_A.amin(-1)


def log_policy(logits_B_A: Tensor) -> tuple[Tensor, Tensor]:
    """Returns probabilities and their logarithms.

    The logarithm of a softmax that underflowed would be minus infinity, and 0 times
    that is not a number; log-softmax stays finite.
    """
    log_probs_B_A = torch.log_softmax(logits_B_A, dim=-1)
    return log_probs_B_A.exp(), log_probs_B_A
