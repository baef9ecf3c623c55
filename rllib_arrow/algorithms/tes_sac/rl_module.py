"""RLlib's SAC module with the paper's convolutions, acting on pixels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium as gym
import torch
from ray.rllib.algorithms.sac.sac_catalog import SACCatalog
from ray.rllib.algorithms.sac.sac_learner import (
    ACTION_LOG_PROBS,
    ACTION_LOG_PROBS_NEXT,
    ACTION_PROBS,
    ACTION_PROBS_NEXT,
    QF_PREDS,
    QF_TARGET_NEXT,
    QF_TWIN_PREDS,
)
from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import (
    DefaultSACTorchRLModule,
)
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.utils.annotations import override
from torch import Tensor, nn

from rllib_arrow.algorithms.forward import ForwardByActing
from rllib_arrow.algorithms.tes_sac.losses import log_policy, within_gap
from rllib_arrow.errors import UserError
from rllib_arrow.models.images import SMALLEST, channel_plan

RAW_LOGITS = "raw_logits"


class PixelEncoder(nn.Module):
    """Stride-2 convolutions of doubling depth down to 4 x 4, with ReLU, flattened."""

    def __init__(self, image_shape: tuple[int, int, int], depth: int) -> None:
        super().__init__()
        plan = channel_plan(image_shape, depth)
        self.layers = nn.Sequential()
        for inputs, outputs in pairwise(plan):
            self.layers.append(nn.Conv2d(inputs, outputs, 4, 2, 1))
            self.layers.append(nn.ReLU())
        self.units = SMALLEST * SMALLEST * plan[-1]

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Takes images [B, H, W, C], uint8 or already scaled to [0, 1]."""
        images = scale_images(batch[Columns.OBS])
        # NHWC memory seen as NCHW is what channels-last convolutions want.
        features = self.layers(images.permute(0, 3, 1, 2))
        return {ENCODER_OUT: features.permute(0, 2, 3, 1).flatten(1)}


def scale_images(obs: Tensor) -> Tensor:
    """Turns uint8 into floats in [0, 1] and leaves floats alone."""
    return obs.float() / 255.0 if obs.dtype == torch.uint8 else obs


class PixelSACCatalog(SACCatalog):
    """Builds a `PixelEncoder` where RLlib's SAC has nothing for images.

    Policy and both Q networks get an encoder each. The heads are RLlib's own, sized
    by `head_fcnet_hiddens`.
    """

    @override(Catalog)
    def _determine_components_hook(self) -> None:
        _check_spaces(self.observation_space, self.action_space)
        self.latent_dims = (self.build_encoder("torch").units,)

    @override(Catalog)
    def build_encoder(self, framework: str) -> PixelEncoder:
        depth = self._model_config_dict["cnn_depth"]
        return PixelEncoder(self.observation_space.shape, depth)


def _check_spaces(observation_space: gym.Space, action_space: gym.Space) -> None:
    if len(observation_space.shape or ()) != 3:
        raise UserError(
            f"observation_space ({observation_space}) must be images [H, W, C]."
        )
    if not isinstance(action_space, gym.spaces.Discrete):
        raise UserError(f"action_space ({action_space}) must be Discrete.")


class TESSACRLModule(ForwardByActing, DefaultSACTorchRLModule):
    """Policy, twin Q and their targets; an acting copy has the policy alone."""

    # Acting

    def initial_state(self, batch_size: int) -> tuple:
        """Returns the empty state of a policy without memory."""
        return ()

    @torch.no_grad()
    def act(
        self, obs: Any, state: tuple, is_first: Any, generator: torch.Generator
    ) -> tuple[Tensor, tuple]:
        """Draws actions from the policy.

        Args:
            obs: uint8 [N, H, W, C], array or tensor.
            state: passed through.
            is_first: not needed without memory.
            generator: the only source of randomness, on the module's device.

        Returns:
            Actions int64 [N] and the state.
        """
        obs = torch.as_tensor(obs, device=generator.device)
        probs, _ = self._policy(obs)
        return torch.multinomial(probs, 1, generator=generator).squeeze(1), state

    def action_logits(self, obs: Tensor, state: tuple) -> Tensor:
        """Returns the policy's logits for the frames."""
        return within_gap(self._logits(obs), self.model_config.get("max_logit_gap"))

    def _logits(self, obs: Tensor) -> Tensor:
        return self.pi(self.pi_encoder({Columns.OBS: obs})[ENCODER_OUT])

    def _policy(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        return log_policy(self.action_logits(obs, ()))

    # Learning

    @override(DefaultSACTorchRLModule)
    def _forward_train_discrete(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Returns what RLlib's SAC returns, and the logits as the network gives them.

        The next states have no graph.
        """
        current = {Columns.OBS: batch[Columns.OBS]}
        output = {
            QF_PREDS: self._q(current, self.qf_encoder, self.qf),
            QF_TWIN_PREDS: self._q(current, self.qf_twin_encoder, self.qf_twin),
        }
        logits = output[RAW_LOGITS] = self._logits(batch[Columns.OBS])
        output[ACTION_PROBS], output[ACTION_LOG_PROBS] = log_policy(
            within_gap(logits, self.model_config.get("max_logit_gap"))
        )
        with torch.no_grad():
            following = {Columns.OBS: batch[Columns.NEXT_OBS]}
            output[QF_TARGET_NEXT] = self.forward_target(following, squeeze=False)
            output[ACTION_PROBS_NEXT], output[ACTION_LOG_PROBS_NEXT] = self._policy(
                batch[Columns.NEXT_OBS]
            )
        return output

    def _q(self, batch: dict[str, Tensor], encoder: nn.Module, head: nn.Module):
        return self._qf_forward_train_helper(batch, encoder, head, squeeze=False)
