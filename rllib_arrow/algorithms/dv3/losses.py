"""The losses of the world model, the actor and the critic, as free functions.

Suffixes name the axes: T time in a replayed sequence, B sequences, H steps of a dream
(H + 1 states), N dreams. Means are over all rows: the DreamerV3 paper sums over T,
its code averages, and so do we.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from rllib_arrow.models.distributions import (
    entropy,
    kl_divergence,
    two_hot_loss,
    two_hot_targets,
)


def kl_losses(
    posterior: Tensor, prior: Tensor, free_bits: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the dynamics loss, the representation loss and the plain KL (detached).

    The first moves the prior only, the second the posterior only; neither pulls below
    `free_bits` nats. Probabilities are [T, B, groups, classes]; the KL of all groups
    together counts, per row.
    """
    log_ratio = posterior.log() - prior.detach().log()
    representation_T_B = (posterior * log_ratio).sum((-2, -1))
    dynamics_T_B = kl_divergence(posterior.detach(), prior).sum(-1)
    return (
        dynamics_T_B.clamp(min=free_bits).mean(),
        representation_T_B.clamp(min=free_bits).mean(),
        dynamics_T_B.detach().mean(),
    )


def image_loss(reconstructed: Tensor, images: Tensor) -> Tensor:
    """Returns the squared error summed over a frame, averaged over frames [N, ...]."""
    return F.mse_loss(reconstructed, images, reduction="sum") / len(images)


def reward_loss(logits: Tensor, rewards: Tensor) -> Tensor:
    """Returns the two-hot cross-entropy of logits [..., BINS] with rewards [...]."""
    return two_hot_loss(logits, rewards).mean()


def continue_loss(logits: Tensor, is_terminated: Tensor) -> Tensor:
    """Returns the binary cross-entropy; truncated rows count as continuing."""
    targets = (~is_terminated).float()
    return F.binary_cross_entropy_with_logits(logits.float(), targets)


@torch.no_grad()
def sequence_losses(
    reconstructed: Tensor,
    images: Tensor,
    reward_logits: Tensor,
    rewards: Tensor,
    continue_logits: Tensor,
    is_terminated: Tensor,
    posterior: Tensor,
    prior: Tensor,
    free_bits: float,
    kl_scale: float,
) -> Tensor:
    """Returns the world model's loss of each sequence: [B], the means of their rows.

    Args:
        reconstructed, images, reward_logits, rewards, continue_logits, is_terminated:
            [T * B, ...].
        posterior, prior: [T, B, groups, classes].
        free_bits: See `kl_losses`.
        kl_scale: Of dynamics and representation loss together; they have one value.
    """
    goes_on = F.binary_cross_entropy_with_logits(
        continue_logits.float(), (~is_terminated).float(), reduction="none"
    )
    image = (reconstructed - images).square().flatten(1).sum(1)
    kl_T_B = kl_divergence(posterior, prior).sum(-1).clamp(min=free_bits)
    heads = image + two_hot_loss(reward_logits, rewards) + goes_on
    return (heads.view(kl_T_B.shape) + kl_scale * kl_T_B).mean(0)


def lambda_returns(
    rewards: Tensor, discounts: Tensor, values: Tensor, gae_lambda: float
) -> Tensor:
    """Returns the lambda-returns of the first H states of dreams.

        R[t] = r[t+1] + d[t+1] ((1 - lambda) v[t+1] + lambda R[t+1]),  R[H] = v[H]

    Args:
        rewards: [H, N], arrived with the states 1..H.
        discounts: [H, N], of the states 1..H: gamma times the probability that the
            episode goes on from there.
        values: [H + 1, N], of all states.

    Returns:
        [H, N].
    """
    one_step = rewards + discounts * values[1:] * (1.0 - gae_lambda)
    carried = discounts * gae_lambda
    later, returns = values[-1], []
    for t in reversed(range(len(rewards))):
        later = torch.addcmul(one_step[t], carried[t], later)
        returns.append(later)
    return torch.stack(returns[::-1])


def dream_weights(discounts: Tensor, starts_continue: Tensor) -> Tensor:
    """Returns how likely, discounted, each of the first H states is reached: [H, N].

    Args:
        discounts: [H, N], of the states 1..H.
        starts_continue: bool [N]. A dream from a terminal state teaches nothing.
    """
    first = starts_continue.to(discounts.dtype).unsqueeze(0)
    return torch.cat([first, discounts[:-1]]).cumprod(0)


def actor_loss(
    probs: Tensor,
    actions: Tensor,
    advantages: Tensor,
    weights: Tensor,
    entropy_scale: float,
) -> tuple[Tensor, Tensor]:
    """Returns the REINFORCE loss with an entropy bonus, and the mean entropy.

    Args:
        probs: [H, N, num_actions], with gradient to the actor.
        actions: int64 [H, N], the actions dreamt.
        advantages, weights: [H, N], without gradient.
    """
    log_probs = probs.log()
    taken = log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    entropies = entropy(probs)
    loss = -(weights * (advantages * taken + entropy_scale * entropies)).mean()
    return loss, entropies.detach().mean()


def critic_loss(
    logits: Tensor,
    returns: Tensor,
    slow_values: Tensor,
    weights: Tensor,
    slow_scale: float,
) -> Tensor:
    """Returns the critic's cross-entropy with the returns and with its slow copy.

    Args:
        logits: [H, N, BINS], with gradient to the critic.
        returns, slow_values, weights: [H, N], without gradient.
    """
    # Cross-entropies with the same distribution add up, and so do their targets.
    targets, shares = two_hot_targets(torch.stack([returns, slow_values], dim=-1))
    to_returns, to_slow = shares.unbind(-2)
    shares = torch.cat([to_returns, to_slow * slow_scale], -1)
    log_probs = torch.log_softmax(logits.float(), -1)
    picked = log_probs.gather(-1, targets.flatten(-2))
    return -(weights.unsqueeze(-1) * shares * picked).sum(-1).mean()
