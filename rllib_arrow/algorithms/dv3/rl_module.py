"""The networks of DV3 as one RLlib module, and how they act and dream."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import Tensor

from rllib_arrow.algorithms.forward import ForwardByActing
from rllib_arrow.errors import UserError
from rllib_arrow.models.actor_critic import Actor, TwoHotHead
from rllib_arrow.models.distributions import BINS, sample_index, two_hot_symlog
from rllib_arrow.models.images import Decoder, Encoder, images_to_float
from rllib_arrow.models.layers import MLP
from rllib_arrow.models.rssm import RSSM, Posterior
from rllib_arrow.models.size import ModelSize, Variant


class Dream(NamedTuple):
    """Imagined trajectories: H steps from N starting states."""

    states: Tensor  # [H + 1, N, state_units], without gradient
    actions: Tensor  # int64 [H, N]
    # [H, N, num_actions], with gradient to the actor alone; None if left to the caller.
    probs: Tensor | None


class DV3RLModule(ForwardByActing, TorchRLModule, InferenceOnlyAPI):
    """World model, actor and critic; an acting copy has encoder, RSSM and actor only.

    The slow critic and the return range live here so that they travel with the
    weights into every checkpoint.
    """

    def setup(self) -> None:
        """Builds the parts from the spaces and `model_config["model_size"]`."""
        self.size = size = ModelSize.from_config(self.model_config["model_size"])
        shape = self._image_shape()
        self.num_actions = self._num_actions()
        self.encoder = Encoder(shape, size.cnn_depth)
        variant = Variant(*(self.model_config.get(k, False) for k in Variant._fields))
        self.rssm = RSSM(size, self.encoder.units, self.num_actions, variant)
        self.actor = Actor(size, self.num_actions)
        self.remembers_policy = self.model_config.get("remembers_policy", False)
        if self.inference_only:
            if self.remembers_policy:
                self.critic = TwoHotHead(size)
            return
        self.decoder = Decoder(size.state, shape, size.cnn_depth)
        self.reward_head = TwoHotHead(size)
        self.continue_head = MLP(size.state, size.mlp_units, size.mlp_layers, 1)
        self.critic = TwoHotHead(size)
        self.slow_critic = copy.deepcopy(self.critic).requires_grad_(False)
        # Running 5th and 95th percentile of the dreams' returns.
        self.register_buffer("return_range", torch.zeros(2))
        if self.model_config.get("learns_spread", False):
            units = size.gru_units + size.latent_units
            self.spread_head = MLP(units, 0, 0, BINS, zero_output=True)

    def _image_shape(self) -> tuple[int, int, int]:
        space = self.observation_space
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 3:
            raise UserError(f"observation_space ({space}) must be images [H, W, C].")
        return space.shape

    def _num_actions(self) -> int:
        if not isinstance(self.action_space, gym.spaces.Discrete):
            raise UserError(f"action_space ({self.action_space}) must be Discrete.")
        return int(self.action_space.n)

    def get_non_inference_attributes(self) -> list[str]:
        """Names what an acting copy does without."""
        return [
            "decoder",
            "reward_head",
            "continue_head",
            *([] if self.remembers_policy else ["critic"]),
            "slow_critic",
            "return_range",
            "spread_head",
        ]

    def world_model_parts(self) -> list[torch.nn.Module]:
        """Returns the modules that the world model's optimiser trains."""
        return [
            self.encoder,
            self.rssm,
            self.decoder,
            self.reward_head,
            self.continue_head,
        ]

    # Acting

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        """Returns (h, z, previous action) for a first call, all rows of it first."""
        h, z = self.rssm.initial(batch_size)
        return h, z, torch.zeros(batch_size, dtype=torch.int64, device=h.device)

    @torch.no_grad()
    def act(
        self,
        obs: Any,
        state: tuple[Tensor, ...],
        is_first: Any,
        generator: torch.Generator,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Draws actions from the policy, one posterior step further.

        Args:
            obs: uint8 [N, H, W, C], array or tensor.
            state: of the step before, from `act` or `initial_state`.
            is_first: bool [N], array or tensor.
            generator: the only source of randomness, on the module's device.

        Returns:
            Actions int64 [N] and the state for the next call.
        """
        h, z, before = state
        obs = torch.as_tensor(obs, device=h.device)
        keep = (~torch.as_tensor(is_first, device=h.device)).to(h.dtype).unsqueeze(1)
        uniform = torch.rand(
            len(obs), self.size.latent_groups + 1, generator=generator, device=h.device
        )
        image_part = self.rssm.posterior_x(self.encoder(images_to_float(obs)))
        action_part = self.rssm.input_a(before) * keep
        h, z = self.rssm.carry(h, z, keep)
        h, z, _ = self.rssm.observe_step(h, z, action_part, image_part, uniform[:, 1:])
        probs = self.actor(torch.cat([h, z], dim=-1))
        actions = sample_index(probs, uniform[:, 0])
        return actions, (h, z, actions)

    @torch.no_grad()
    def policy_and_value(self, state: tuple[Tensor, ...]) -> Tensor:
        """Returns what to remember of the state that `act` returned with an action.

        float16 [N, num_actions + 1]: the probabilities that the action was drawn from,
        and the value in symlog.
        """
        states = torch.cat(state[:2], dim=-1)
        value = two_hot_symlog(self.critic(states)).unsqueeze(-1)
        return torch.cat([self.actor(states), value], dim=-1).half()

    # Learning

    def infer_states(
        self, images: Tensor, actions: Tensor, is_first: Tensor, noise: Tensor
    ) -> Posterior:
        """Encodes frames [T * B, C, H, W] at once and runs the RSSM through them."""
        embedded = self.encoder(images).unflatten(0, is_first.shape)
        return self.rssm.observe(embedded, actions, is_first, noise)

    @torch.no_grad()
    def dream(self, starts: Tensor, noise: Tensor) -> Dream:
        """Lets the actor act in the world model's imagination.

        No graph is kept but the actor's own, on states cut off from what came before:
        REINFORCE needs no other, and so nothing has to be computed twice.

        Args:
            starts: [N, state_units].
            noise: uniform [H, N, groups + 1]; the first column draws the action.
        """
        states, all_actions, all_probs = [starts], [], []
        for u in noise:
            with torch.enable_grad():
                probs = self.actor(states[-1])
            state, actions = self.dream_step(states[-1], probs, u)
            states.append(state)
            all_actions.append(actions)
            all_probs.append(probs)
        with torch.enable_grad():
            probs = torch.stack(all_probs)
        return Dream(torch.stack(states), torch.stack(all_actions), probs)

    def dream_step(
        self, state: Tensor, probs: Tensor, u: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the next state [N, state_units] and the actions that led to it."""
        h, z = state.split([self.size.gru_units, self.size.latent_units], dim=-1)
        actions = sample_index(probs, u[:, 0])
        h, z = self.rssm.imagine_step(h, z, actions, u[:, 1:])
        return torch.cat([h, z], dim=-1), actions

    # RLlib's forward methods

    state_keys = ("h", "z", "action")

    def action_logits(self, obs: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        """Returns the policy's logits in the states that `act` inferred."""
        return self.actor(torch.cat(state[:2], dim=-1)).log()

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError(
            "DV3RLModule has no forward_train: DV3Learner.learn_epoch trains its parts."
        )
