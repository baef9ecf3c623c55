"""A straightforward learner for comparison: the textbook's lines, step by step.

Same networks, sizes, optimisers and losses as ours, written as one would from the
paper: distribution objects at every step of every loop, the prior inside the loop, the
layers over concatenated inputs, a dream that keeps its graph, and images as PyTorch
lays them out by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Independent,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    kl_divergence,
)
from torch.nn import functional as F

from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.distributions import BINS, symexp, symlog


class TwoHot:
    """A distribution over numbers, by two-hot logits."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        self.bins = torch.linspace(-20.0, 20.0, BINS)

    @property
    def mean(self) -> Tensor:
        return symexp((torch.softmax(self.logits, -1) * self.bins).sum(-1))

    def log_prob(self, values: Tensor) -> Tensor:
        x = symlog(values).unsqueeze(-1)
        below = ((self.bins <= x).sum(-1) - 1).clamp(0, BINS - 1)
        above = (BINS - (self.bins > x).sum(-1)).clamp(0, BINS - 1)
        same = below == above
        to_below = torch.where(same, 1, (self.bins[below] - x.squeeze(-1)).abs())
        to_above = torch.where(same, 1, (self.bins[above] - x.squeeze(-1)).abs())
        total = to_below + to_above
        target = F.one_hot(below, BINS) * (to_above / total).unsqueeze(-1)
        target = target + F.one_hot(above, BINS) * (to_below / total).unsqueeze(-1)
        log_probs = self.logits - torch.logsumexp(self.logits, -1, keepdim=True)
        return (target * log_probs).sum(-1)


def unimix(logits: Tensor) -> Tensor:
    """Returns logits whose distribution has 1 % of uniform mixed in."""
    probs = 0.99 * torch.softmax(logits, -1) + 0.01 / logits.shape[-1]
    return torch.log(probs)


class PlainLearner:
    """Takes updates on one batch."""

    def __init__(
        self, net: DV3RLModule, config: Any, batch: dict[str, np.ndarray]
    ) -> None:
        self.net = net.to(memory_format=torch.contiguous_format)
        self.config = config
        self.batch = {key: torch.from_numpy(value) for key, value in batch.items()}
        parts = torch.nn.ModuleList(self.net.world_model_parts())
        self.world_params = list(parts.parameters())
        self.world_optimizer = torch.optim.Adam(self.world_params, lr=1e-4)
        actor, critic = self.net.actor.parameters(), self.net.critic.parameters()
        self.actor_optimizer = torch.optim.Adam(actor, lr=1e-4)
        self.critic_optimizer = torch.optim.Adam(critic, lr=1e-4)

    def update(self) -> None:
        """Trains the world model, then actor and critic."""
        starts = self.update_world_model().detach().flatten(0, 1)
        goes_on = (~self.batch["is_terminated"]).flatten().float()
        if self.config.dream_starts:
            chosen = torch.randperm(len(starts))[: self.config.dream_starts]
            starts, goes_on = starts[chosen], goes_on[chosen]
        self.update_actor_critic(starts, goes_on)

    def latent(self, logits: Tensor) -> Independent:
        size = self.net.size
        logits = logits.unflatten(-1, (size.latent_groups, size.latent_classes))
        return Independent(OneHotCategoricalStraightThrough(logits=unimix(logits)), 1)

    def recur(self, h: Tensor, z: Tensor, action: Tensor) -> Tensor:
        rssm = self.net.rssm
        weight = torch.cat([rssm.input_z.weight, rssm.input_a.weight.t()], 1)
        x = F.linear(torch.cat([z, action], -1), weight)
        return rssm.gru(rssm.input_norm(x), h)

    def posterior(self, h: Tensor, embedded: Tensor) -> Independent:
        rssm = self.net.rssm
        weight = torch.cat([rssm.posterior_h.weight, rssm.posterior_x.weight], 1)
        x = F.linear(torch.cat([h, embedded], -1), weight)
        return self.latent(rssm.posterior_out(rssm.posterior_norm(x)))

    def update_world_model(self) -> Tensor:
        net, config, batch = self.net, self.config, self.batch
        images = (batch["obs"].float() / 255).permute(0, 1, 4, 2, 3).contiguous()
        embedded = net.encoder(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        actions = F.one_hot(batch["actions"], net.num_actions).float()
        h, z = net.rssm.initial(len(images))
        before = torch.zeros_like(actions[:, 0])
        states, posteriors, priors = [], [], []
        for t in range(images.shape[1]):
            keep = (~batch["is_first"][:, t]).float().unsqueeze(-1)
            h = self.recur(h * keep, z * keep, before * keep)
            priors.append(self.latent(net.rssm.prior(h)).base_dist.logits)
            posterior = self.posterior(h, embedded[:, t])
            posteriors.append(posterior.base_dist.logits)
            z = posterior.rsample().flatten(1)
            states.append(torch.cat([h, z], -1))
            before = actions[:, t]
        states = torch.stack(states, 1)
        loss = self.kl_loss(torch.stack(posteriors, 1), torch.stack(priors, 1))
        decoded = self.decode(states.flatten(0, 1)).unflatten(0, images.shape[:2])
        loss = loss + (decoded - images).square().sum((-3, -2, -1)).mean()
        reward = TwoHot(net.reward_head(states))
        loss = loss - reward.log_prob(batch["rewards"]).mean()
        goes_on = Bernoulli(logits=net.continue_head(states).squeeze(-1))
        loss = loss - goes_on.log_prob((~batch["is_terminated"]).float()).mean()
        self.world_optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self.world_params, config.world_model_grad_clip_by_global_norm
        )
        self.world_optimizer.step()
        return states

    def decode(self, states: Tensor) -> Tensor:
        decoder = self.net.decoder
        x = decoder.linear(states).unflatten(1, (4, 4, -1)).permute(0, 3, 1, 2)
        x = decoder.layers[:-1](decoder.norm(x.contiguous()))
        last = decoder.layers[-1]
        return F.conv_transpose2d(x, last.weight, last.bias, 2, 1)

    def kl_loss(self, posterior: Tensor, prior: Tensor) -> Tensor:
        def distribution(logits: Tensor) -> Independent:
            return Independent(OneHotCategorical(logits=logits), 1)

        dynamics = kl_divergence(distribution(posterior.detach()), distribution(prior))
        representation = kl_divergence(
            distribution(posterior), distribution(prior.detach())
        )
        free = self.config.free_bits
        return (
            0.5 * dynamics.clamp(min=free).mean()
            + 0.1 * representation.clamp(min=free).mean()
        )

    def policy(self, states: Tensor) -> OneHotCategorical:
        return OneHotCategorical(probs=self.net.actor(states))

    def update_actor_critic(self, starts: Tensor, starts_go_on: Tensor) -> None:
        net, config = self.net, self.config
        h, z = starts.split([net.size.gru_units, net.size.latent_units], -1)
        states, actions = [starts], []
        for _ in range(config.horizon_H):
            actions.append(self.policy(states[-1].detach()).sample())
            h = self.recur(h, z, actions[-1])
            z = self.latent(net.rssm.prior(h)).rsample().flatten(1)
            states.append(torch.cat([h, z], -1))
        states, actions = torch.stack(states).detach(), torch.stack(actions)
        values = TwoHot(net.critic(states)).mean
        rewards = TwoHot(net.reward_head(states)).mean
        goes_on = Bernoulli(logits=net.continue_head(states).squeeze(-1)).probs
        goes_on = goes_on.clone()
        goes_on[0] = starts_go_on
        discounts = (config.gamma * goes_on).detach()
        returns = self.lambda_returns(rewards, values, discounts).detach()
        weights = (torch.cumprod(discounts, 0) / config.gamma)[:-1]
        low, high = torch.quantile(returns, 0.05), torch.quantile(returns, 0.95)
        scale = (high - low).clamp(min=1.0)
        policy = self.policy(states[:-1])
        objective = (
            policy.log_prob(actions) * ((returns - values[:-1]) / scale).detach()
        )
        objective = objective + config.entropy_scale * policy.entropy()
        self.step(self.actor_optimizer, net.actor, -(weights * objective).mean())
        critic = TwoHot(net.critic(states[:-1]))
        slow = TwoHot(net.slow_critic(states[:-1])).mean.detach()
        loss = -critic.log_prob(returns) - critic.log_prob(slow)
        self.step(self.critic_optimizer, net.critic, (weights * loss).mean())
        pairs = zip(net.slow_critic.parameters(), net.critic.parameters(), strict=True)
        for slow_param, param in pairs:
            slow_param.data.mul_(0.98).add_(param.data, alpha=0.02)

    def lambda_returns(
        self, rewards: Tensor, values: Tensor, discounts: Tensor
    ) -> Tensor:
        returns, later = [], values[-1]
        for t in reversed(range(len(rewards) - 1)):
            mixed = 0.05 * values[t + 1] + 0.95 * later
            later = rewards[t + 1] + discounts[t + 1] * mixed
            returns.append(later)
        return torch.stack(returns[::-1])

    def step(
        self, optimizer: torch.optim.Optimizer, part: torch.nn.Module, loss: Tensor
    ) -> None:
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(part.parameters(), 100.0)
        optimizer.step()
