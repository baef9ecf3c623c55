"""What an update computes, between drawing its noise and taking gradient steps.

Functions of tensors and networks that draw nothing, change nothing and wait for
nothing: so each can be run as it stands, or compiled (see `parts`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rllib_arrow.algorithms.dv3 import losses
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.distributions import entropy, two_hot_mean
from rllib_arrow.models.images import images_to_float
from rllib_arrow.models.rssm import Posterior

Metrics = dict[str, Tensor]


class Encoded(NamedTuple):
    """A minibatch up to where one step waits for the other."""

    images: Tensor  # float [T * B, C, H, W]
    prepared: tuple[Tensor, Tensor, Tensor]  # see `RSSM.prepare`


class ValuedDream(NamedTuple):
    """What the networks say about a dream; [H, N], without gradient if not told."""

    value_logits: Tensor  # [H, N, BINS], with gradient to the critic
    probs: Tensor  # [H, N, num_actions], with gradient to the actor
    values: Tensor  # [H + 1, N]
    slow_values: Tensor
    rewards: Tensor
    returns: Tensor
    weights: Tensor


def autocast(config: Any, device: torch.device) -> torch.autocast:
    """Returns the context in which networks compute in bfloat16, if so configured."""
    return torch.autocast(device.type, torch.bfloat16, enabled=config.mixed_precision)


def encode(
    net: DV3RLModule, config: Any, obs: Tensor, actions: Tensor, is_first: Tensor
) -> Encoded:
    """Takes [T, B, ...] of replay's rows."""
    with autocast(config, obs.device):
        images = images_to_float(obs.flatten(0, 1))
        embedded = net.encoder(images).unflatten(0, is_first.shape)
        return Encoded(images, net.rssm.prepare(embedded, actions, is_first))


def world_model_loss(
    net: DV3RLModule,
    config: Any,
    images: Tensor,
    posterior: Posterior,
    rewards: Tensor,
    is_terminated: Tensor,
    wants_sequences: bool = False,
) -> tuple[Tensor, Metrics, Tensor | None]:
    """Returns the loss of all of the world model, and what is worth watching.

    The last is the loss of each sequence [B], if it is wanted.
    """
    with autocast(config, images.device):
        prior = net.rssm.predict(posterior.h)
        states = posterior.states.flatten(0, 1)
        reconstructed = net.decoder(states)
        reward_logits = net.reward_head(states)
        continue_logits = net.continue_head(states).squeeze(-1)
    dynamics, representation, kl = losses.kl_losses(
        posterior.probs, prior, config.free_bits
    )
    rewards, is_terminated = rewards.flatten(), is_terminated.flatten()
    image = losses.image_loss(reconstructed.float(), images)
    reward = losses.reward_loss(reward_logits, rewards)
    goes_on = losses.continue_loss(continue_logits, is_terminated)
    total = (
        image
        + config.reward_loss_scale * reward
        + goes_on
        + config.kl_dynamics_scale * dynamics
        + config.kl_representation_scale * representation
    )
    metrics = {
        "world_model_loss": total,
        "image_loss": image,
        "reward_loss": reward,
        "continue_loss": goes_on,
        "dynamics_loss": dynamics,
        "representation_loss": representation,
        "kl": kl,
        "posterior_entropy": entropy(posterior.probs.detach()).sum(-1).mean(),
        "prior_entropy": entropy(prior.detach()).sum(-1).mean(),
    }
    by_sequence = None
    if wants_sequences:
        by_sequence = losses.sequence_losses(
            reconstructed.float(),
            images,
            reward_logits,
            rewards,
            continue_logits,
            is_terminated,
            posterior.probs,
            prior,
            config.free_bits,
            config.kl_dynamics_scale + config.kl_representation_scale,
        )
    return total, _detached(metrics), by_sequence


def value_dream(
    net: DV3RLModule,
    config: Any,
    states: Tensor,
    probs: Tensor | None,
    starts_continue: Tensor,
) -> ValuedDream:
    """Asks the heads about a dream's states [H + 1, N, state_units]."""
    with autocast(config, states.device):
        if probs is None:
            probs = net.actor(states[:-1])
        # With gradients first: before torch 2.10 autocast goes on using weights that it
        # has cast without.
        value_logits = net.critic(states[:-1])
        with torch.no_grad():
            reward_logits = net.reward_head(states[1:])
            continue_logits = net.continue_head(states[1:]).squeeze(-1)
            slow_logits = net.slow_critic(states[:-1])
            last_logits = net.critic(states[-1:])
    rewards, slow_values = two_hot_mean(reward_logits), two_hot_mean(slow_logits)
    discounts = config.gamma * torch.sigmoid(continue_logits.float())
    values = two_hot_mean(torch.cat([value_logits.detach(), last_logits]))
    returns = losses.lambda_returns(rewards, discounts, values, config.gae_lambda)
    weights = losses.dream_weights(discounts, starts_continue)
    return ValuedDream(
        value_logits, probs, values, slow_values, rewards, returns, weights
    )


def actor_critic_loss(
    config: Any,
    valued: ValuedDream,
    actions: Tensor,
    return_range: Tensor,
    scale: Tensor | None = None,
) -> tuple[Tensor, Metrics]:
    """Returns the sum of both losses, whose gradients do not meet.

    Advantages are divided by the return range, or by a scale for each state [H, N].
    """
    values, returns, weights = valued.values, valued.returns, valued.weights
    if scale is None:
        scale = return_range.clamp(min=1.0)
    advantages = (returns - values[:-1]) / scale
    actor, policy_entropy = losses.actor_loss(
        valued.probs, actions, advantages, weights, config.entropy_scale
    )
    critic = losses.critic_loss(
        valued.value_logits,
        returns,
        valued.slow_values,
        weights,
        config.slow_critic_scale,
    )
    metrics = {
        "actor_loss": actor,
        "critic_loss": critic,
        "policy_entropy": policy_entropy,
        "return_range": return_range,
        "dream_return": returns.mean(),
        "dream_reward": valued.rewards.mean(),
        "dream_value": values.mean(),
        "advantage_std": advantages.std(correction=0),
    }
    return actor + critic, _detached(metrics)


def _detached(metrics: Metrics) -> Metrics:
    return {name: value.detach() for name, value in metrics.items()}
