"""The parts of DV3, for diagnostics: each asked what the parts before it said then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rllib_arrow.algorithms.dv3.pictures import story
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.inside.anatomy import Anatomy, Arrays, Finding, actor_critic_drift
from rllib_arrow.metrics import drift
from rllib_arrow.models.distributions import one_hot, two_hot_loss, two_hot_mean
from rllib_arrow.models.images import images_to_float, layer_by_layer
from rllib_arrow.models.rssm import Posterior

STORIES = 2  # sequences of a probe set that are drawn


class DreamerAnatomy(Anatomy):
    """Encoder, recurrence, posterior, prior, heads, actor and critic; and the whole.

    Questions and answers are time-major: row t * B + b is step t of sequence b.
    """

    gradients: ClassVar = {
        "world_model_grad_norm": "world_model",
        "actor_grad_norm": "actor",
        "critic_grad_norm": "critic",
    }

    def questions(self, net: DV3RLModule, rows: Arrays, seed: int) -> Arrays:
        rows = _Rows(net, rows, seed)
        features = net.encoder(rows.images)
        found = rows.observe(features)
        z = found.z.unflatten(-1, (net.size.latent_groups, -1)).argmax(-1)
        h, z = found.h.flatten(0, 1), z.flatten(0, 1)
        return {"features": _array(features), "h": _array(h), "z": _array(z)}

    def answers(
        self, net: DV3RLModule, rows: Arrays, questions: Arrays, seed: int
    ) -> Arrays:
        truth, rows = rows, _Rows(net, rows, seed)
        features, h, z = rows.states_of(questions)
        states = torch.cat([h, z], dim=-1)
        reward = net.reward_head(states)
        goes_on = net.continue_head(states).squeeze(-1)
        now = net.encoder(rows.images)
        agent = net.actor(rows.observe(now).states.flatten(0, 1))
        rewards = torch.as_tensor(truth["rewards"].T.reshape(-1), device=h.device)
        answers = {
            "encoder": now,
            "recurrence": rows.recur(h, z),
            "posterior": net.rssm.infer(h, net.rssm.posterior_x(features)),
            "prior": net.rssm.predict(h),
            "reward": two_hot_mean(reward),
            "reward_loss": two_hot_loss(reward, rewards),
            "continuation": torch.sigmoid(goes_on),
            "actor": net.actor(states),
            "critic": two_hot_mean(net.critic(states)),
            "agent": agent,
        }
        return {name: _array(answer) for name, answer in answers.items()}

    def drift(self, rows: Arrays, then: Arrays, now: Arrays) -> Iterator[Finding]:
        for part in ("encoder", "recurrence"):
            yield Finding(part, "cka", drift.linear_cka(then[part], now[part]))
        for part in ("posterior", "prior"):
            yield Finding(part, "kl", drift.mean_kl(then[part], now[part]))
        rewards, ends = (rows[k].T.reshape(-1) for k in ("rewards", "is_terminated"))
        error = drift.mean_error(now["reward"], rewards)
        yield Finding("reward", "error", error)
        yield Finding("reward", "loss", float(now["reward_loss"].mean()))
        error = drift.mean_error(now["continuation"], ~ends)
        yield Finding("continuation", "error", error)
        loss = drift.binary_loss(now["continuation"], ~ends)
        yield Finding("continuation", "loss", loss)
        yield from actor_critic_drift(then, now)

    def networks(self, net: DV3RLModule) -> dict[str, list[nn.Module]]:
        rssm = net.rssm
        return {
            "encoder": [net.encoder],
            "recurrence": [rssm.input_z, rssm.input_a, rssm.input_norm, rssm.gru],
            "posterior": [
                rssm.posterior_h,
                rssm.posterior_x,
                rssm.posterior_norm,
                rssm.posterior_out,
            ],
            "prior": [rssm.prior],
            "decoder": [net.decoder],
            "reward": [net.reward_head],
            "continuation": [net.continue_head],
            "actor": [net.actor],
            "critic": [net.critic],
        }

    def use_all(self, net: DV3RLModule, rows: Arrays, seed: int) -> None:
        with layer_by_layer(net.encoder, net.decoder):
            questions = self.questions(net, rows, seed)
            self.answers(net, rows, questions, seed)
            _, h, z = _Rows(net, rows, seed).states_of(questions)
            net.decoder(torch.cat([h, z], dim=-1))

    def strip(self, net: DV3RLModule, rows: Arrays, seed: int) -> np.ndarray:
        # A dream knows of no reset, so those without one come first.
        calm = np.argsort(rows["is_first"][:, 1:].sum(1), kind="stable")[:STORIES]
        return story(net, {name: array[calm] for name, array in rows.items()}, seed)


class _Rows:
    """Rows as tensors [T, B, ...] on the network's device, and their noise."""

    def __init__(self, net: DV3RLModule, rows: Arrays, seed: int) -> None:
        device = net.return_range.device

        def put(name: str) -> Tensor:
            return torch.tensor(rows[name].swapaxes(0, 1), device=device)

        self._rssm, self._size = net.rssm, net.size
        self.images = images_to_float(put("obs").flatten(0, 1))
        self.actions, self.is_first = put("actions"), put("is_first")
        generator = torch.Generator().manual_seed(seed)
        noise = (*self.is_first.shape, net.size.latent_groups)
        self.noise = torch.rand(noise, generator=generator).to(device)

    def observe(self, features: Tensor) -> Posterior:
        """Returns the posterior of encoded frames [T * B, ...]."""
        steps = features.unflatten(0, self.is_first.shape)
        return self._rssm.observe(steps, self.actions, self.is_first, self.noise)

    def states_of(self, questions: Arrays) -> tuple[Tensor, Tensor, Tensor]:
        """Returns old features, h and z as [T * B, ...]."""
        device = self.noise.device
        features, h, index = (
            torch.tensor(questions[name], device=device)
            for name in ("features", "h", "z")
        )
        shape = (*index.shape, self._size.latent_classes)
        z = one_hot(index.long(), h.new_zeros(shape))
        return features, h, z.flatten(1)

    def recur(self, h: Tensor, z: Tensor) -> Tensor:
        """Returns each step's h, given the old states of the steps before."""
        steps = len(self.is_first)
        h, z = (_one_step_later(x.unflatten(0, (steps, -1))) for x in (h, z))
        keep = (~self.is_first).float()
        keep[0] = 0.0  # what came before the first row is not known
        keep = keep.flatten().unsqueeze(1)
        actions = self._rssm.input_a(self.actions.roll(1, 0).flatten()) * keep
        return self._rssm.recur(*self._rssm.carry(h, z, keep), actions)


def _one_step_later(steps: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(steps[:1]), steps[:-1]]).flatten(0, 1)


def _array(tensor: Tensor) -> np.ndarray:
    small = tensor.dtype == torch.int64  # numbers of classes
    return tensor.to(torch.int16 if small else torch.float32).cpu().numpy()
