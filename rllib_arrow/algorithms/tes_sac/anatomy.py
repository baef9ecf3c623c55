"""The parts of TES-SAC, for diagnostics: each asked what its encoder said then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from torch import Tensor, nn

from rllib_arrow.algorithms.tes_sac.losses import within_gap
from rllib_arrow.algorithms.tes_sac.rl_module import TESSACRLModule
from rllib_arrow.inside.anatomy import Anatomy, Arrays, Finding, actor_critic_drift
from rllib_arrow.metrics import drift


class SoftActorCriticAnatomy(Anatomy):
    """The policy's encoder and head, those of the critics, and the whole policy."""

    gradients: ClassVar = {
        "policy_grad_norm": "actor",
        "qf_grad_norm": "critic",
    }

    def questions(self, net: TESSACRLModule, rows: Arrays, seed: int) -> Arrays:
        batch = {Columns.OBS: _frames(net, rows)}
        encoders = {
            "actor": net.pi_encoder,
            "critic": net.qf_encoder,
            "twin": net.qf_twin_encoder,
        }
        return {
            name: encoder(batch)[ENCODER_OUT].cpu().numpy()
            for name, encoder in encoders.items()
        }

    def answers(
        self, net: TESSACRLModule, rows: Arrays, questions: Arrays, seed: int
    ) -> Arrays:
        obs = _frames(net, rows)
        now = self.questions(net, rows, seed)
        old = {k: torch.tensor(v, device=obs.device) for k, v in questions.items()}
        gap = net.model_config.get("max_logit_gap")
        values = (net.qf(old["critic"]) + net.qf_twin(old["twin"])) / 2
        answers = {
            "actor": torch.softmax(within_gap(net.pi(old["actor"]), gap), -1),
            "critic": values,
            "agent": torch.softmax(net.action_logits(obs, ()), -1),
        }
        return {
            "encoder": now["actor"],
            "critic_encoder": now["critic"],
            **{name: answer.cpu().numpy() for name, answer in answers.items()},
        }

    def drift(self, rows: Arrays, then: Arrays, now: Arrays) -> Iterator[Finding]:
        for part in ("encoder", "critic_encoder"):
            yield Finding(part, "cka", drift.linear_cka(then[part], now[part]))
        yield from actor_critic_drift(then, now)

    def networks(self, net: TESSACRLModule) -> dict[str, list[nn.Module]]:
        return {
            "encoder": [net.pi_encoder],
            "actor": [net.pi],
            "critic_encoder": [net.qf_encoder, net.qf_twin_encoder],
            "critic": [net.qf, net.qf_twin],
        }


def _frames(net: TESSACRLModule, rows: Arrays) -> Tensor:
    obs = rows["obs"].reshape(-1, *rows["obs"].shape[2:])
    return torch.tensor(obs, device=next(net.parameters()).device)
