"""The gradient steps of one minibatch: the world model's, the actor's and the critic's.

An update never waits for a value, so that a GPU is never idle, and brings no constant
from the host, so that a CUDA graph can record it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from torch import Tensor
from torch import distributed as dist

from rllib_arrow.algorithms.dv3.anchors import pull_to_initial, pull_to_mean
from rllib_arrow.algorithms.dv3.objectives import Encoded
from rllib_arrow.algorithms.dv3.rl_module import Dream, DV3RLModule
from rllib_arrow.algorithms.dv3.update_parts import Parts
from rllib_arrow.algorithms.peers import average, world_size
from rllib_arrow.models.rssm import Posterior

CLIPPED_AS = {"rehearsal": "actor", "spread": "critic"}
HELD = ("world_model", "actor")  # what online EWC holds


class Trains(NamedTuple):
    """What a minibatch trains."""

    world_model: bool
    actor_critic: bool


class Learned(NamedTuple):
    """The metrics of one minibatch's gradient steps, empty where none was taken."""

    world_model: dict[str, Tensor]
    actor_critic: dict[str, Tensor]
    by_sequence: Tensor | None  # the world model's loss of each sequence, if wanted


class GradientSteps:
    """Mixed into the learner, which has networks, settings, optimisers and a device."""

    net: DV3RLModule
    config: Any
    parts: Parts
    _device: torch.device
    _generator: torch.Generator
    _return_quantiles: Tensor
    _initial_weights: dict[Tensor, Tensor]  # by the weights of now; empty if not needed

    def take_update(self, trains: Trains, batch: dict[str, Tensor]) -> Learned:
        """Takes one minibatch's gradient steps."""
        learned = Learned({}, {}, None)
        if trains.world_model:
            learned, posterior = self.update_world_model(batch)
        else:
            with torch.no_grad():
                _, posterior = self._posterior(batch)
        if trains.actor_critic:
            metrics = self.update_actor_critic(posterior, batch)
            learned = learned._replace(actor_critic=metrics)
        return learned

    # The world model

    def update_world_model(self, batch: dict[str, Tensor]) -> tuple[Learned, Posterior]:
        """Takes one gradient step; returns its metrics and the (detached) states."""
        encoded, posterior = self._posterior(batch)
        loss, metrics, by_sequence = self.parts.world_model_loss(
            encoded.images, posterior, batch["rewards"], batch["is_terminated"]
        )
        metrics |= self._descend(loss, "world_model")
        detached = Posterior(*(part.detach() for part in posterior))
        return Learned(metrics, {}, by_sequence), detached

    def _posterior(self, batch: dict[str, Tensor]) -> tuple[Encoded, Posterior]:
        """Runs the world model over a batch."""
        is_first = batch["is_first"]
        noise = self._uniform(*is_first.shape, self.net.size.latent_groups)
        encoded = self.parts.encode(batch["obs"], batch["actions"], is_first)
        return encoded, self.parts.unroll(encoded, noise)

    # Actor and critic

    def update_actor_critic(
        self, posterior: Posterior, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Dreams from posterior states; one gradient step for actor and critic each."""
        starts, starts_continue = self._draw_starts(posterior, batch["is_terminated"])
        dream = self._dream(starts)
        valued = self.parts.value_dream(dream.states, dream.probs, starts_continue)
        return_range = self._track_return_range(valued.returns)
        terms, told, trained = [], {}, ["actor", "critic"]
        scale = None
        if self.config.advantage_scale == "state":
            term, scale, metrics = self.parts.spread_loss(dream.states[:-1], valued)
            terms, told, trained = [term], metrics, [*trained, "spread"]
        if self.config.cloning:
            term, metrics = self.parts.cloning_loss(posterior.states, batch["policy"])
            terms, told = [*terms, term], told | metrics
        loss, metrics = self.parts.actor_critic_loss(
            valued, dream.actions, return_range, scale
        )
        metrics |= told | self._descend(sum(terms, loss), *trained)
        self._move_slow_critic()
        return metrics

    def rehearse(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Dreams from a long-term minibatch; one gradient step for the actor alone."""
        with torch.no_grad():
            _, posterior = self._posterior(batch)
        siblings = self.config.rehearsal_siblings
        starts, starts_continue = self._draw_starts(
            posterior, batch["is_terminated"], siblings
        )
        starts_continue = starts_continue.repeat_interleave(siblings)
        dream = self._dream(starts.repeat_interleave(siblings, 0))
        loss, metrics = self.parts.rehearsal_loss(
            dream.states, dream.actions, starts_continue
        )
        return metrics | self._descend(loss, "rehearsal")

    def _draw_starts(
        self, posterior: Posterior, is_terminated: Tensor, siblings: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Returns starting states [N, state_units] and whether they go on, bool [N].

        N is the number of dreams wanted, divided by how many start from one state.
        """
        states, goes_on = posterior.states.flatten(0, 1), ~is_terminated.flatten()
        dreams = self.config.dream_starts or len(states) * world_size()
        wanted = -(-dreams // (world_size() * siblings))
        if wanted < len(states):
            order = self._shuffled(len(states))
            return states[order[:wanted]], goes_on[order[:wanted]]
        return states, goes_on

    def _dream(self, starts: Tensor) -> Dream:
        shape = self.config.horizon_H, len(starts), self.net.size.latent_groups + 1
        return self.parts.dream(starts, self._uniform(*shape))

    @torch.no_grad()
    def _track_return_range(self, returns: Tensor) -> Tensor:
        """Moves the running percentiles; returns the range between them."""
        gathered = [torch.empty_like(returns) for _ in range(world_size())]
        if len(gathered) > 1:
            dist.all_gather(gathered, returns)
            returns = torch.cat(gathered)
        percentiles = torch.quantile(returns.flatten(), self._return_quantiles)
        tracked = self.net.return_range
        tracked.lerp_(percentiles, 1.0 - self.config.return_normalization_decay)
        return tracked[1] - tracked[0]

    @torch.no_grad()
    def _move_slow_critic(self) -> None:
        pairs = zip(
            self.net.slow_critic.parameters(), self.net.critic.parameters(), strict=True
        )
        for slow, fast in pairs:
            slow.lerp_(fast, 1.0 - self.config.slow_critic_decay)

    # Tools

    def _shuffled(self, count: int) -> Tensor:
        """Returns the numbers below `count` in random order."""
        if self._device.type == "cpu":
            return torch.randperm(count, generator=self._generator)
        return self._uniform(count).argsort()  # which a CUDA graph can record

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self._generator, device=self._device)

    def _descend(self, loss: Tensor, *names: str) -> dict[str, Tensor]:
        """Takes a step with each optimiser; returns the norms before clipping."""
        optimizers = [self.get_optimizer(DEFAULT_MODULE_ID, name) for name in names]
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norms = {}
        for name, optimizer in zip(names, optimizers, strict=True):
            params = optimizer.param_groups[0]["params"]
            if world_size() > 1:
                average([param.grad for param in params])
            whose = CLIPPED_AS.get(name, name)
            limit = getattr(self.config, f"{whose}_grad_clip_by_global_norm")
            norms[f"{name}_grad_norm"] = self.parts.step(optimizer, limit)
            self._hold(name, optimizer)
        return norms

    def _hold(self, name: str, optimizer: torch.optim.Adam) -> None:
        """Pulls weights back after a step, if they are anchored: see `anchors`."""
        if self.config.ewc_scale and name in HELD:
            pull_to_mean(optimizer, self.config.ewc_scale, self.config.ewc_updates)
        if self._initial_weights and name not in CLIPPED_AS:
            pull_to_initial(optimizer, self._initial_weights, self.config.l2_init_scale)
