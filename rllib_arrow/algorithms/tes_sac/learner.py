"""RLlib's SAC learner with a scheduled entropy target, one epoch at a call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.sac.sac_learner import SACLearner
from ray.rllib.algorithms.sac.torch.sac_torch_learner import SACTorchLearner
from ray.rllib.core import COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.learner import Learner
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.annotations import override
from torch import Tensor
from torch import distributed as dist

from rllib_arrow.algorithms import peers
from rllib_arrow.algorithms.tes_sac import objectives
from rllib_arrow.algorithms.tes_sac.entropy_target import EntropyTarget
from rllib_arrow.algorithms.tes_sac.transitions import to_transitions
from rllib_arrow.seeding import derive_seed

TES = "tes"


class TESSACLearner(SACTorchLearner):
    """Trains a TESSACRLModule, alone or in step with other learners.

    Optimisers, temperature and target networks are those of RLlib's SAC: the policy
    and each Q network have an encoder and an optimiser of their own, so no parameter
    is stepped twice and none of the critics' is moved by the actor's loss. RLlib's
    `update` and its connectors are not needed: an epoch is one call, and its batches
    come straight from replay.
    """

    # Building

    @override(SACTorchLearner)
    def build(self) -> None:
        super().build()
        if peers.world_size() > 1:
            for tensor in self.module[DEFAULT_MODULE_ID].state_dict().values():
                dist.broadcast(tensor, src=0)
        start = self._get_target_entropy(DEFAULT_MODULE_ID)
        self.entropy_target = self.config.entropy_target(start)
        self._target_pairs = [
            pair
            for net, slow in self.module[DEFAULT_MODULE_ID].get_target_network_pairs()
            for pair in zip(net.parameters(), slow.parameters(), strict=True)
        ]
        self._step_values: dict[str, Tensor] = {}  # of the latest gradient step

    @override(TorchLearner)
    def _make_module(self) -> Any:
        """Starts the weights from the run's seed, leaving torch's own stream alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.config.seed, "init"))
            return super()._make_module()

    @override(TorchLearner)
    def _make_modules_ddp_if_necessary(self) -> None:
        """Leaves the module alone: `compute_gradients` averages over learners."""

    @override(SACTorchLearner)
    def configure_optimizers_for_module(
        self, module_id: str, config: Any = None
    ) -> None:
        super().configure_optimizers_for_module(module_id, config)
        for _, optimizer in self.get_optimizers_for_module(module_id):
            # The same arithmetic in one pass over the parameters.
            for group in optimizer.param_groups:
                group["fused"] = True

    @override(SACLearner)
    def _get_target_entropy(self, module_id: str) -> float:
        """Returns the first target: positive, not RLlib's -1 for discrete actions."""
        config = self.config.get_config_for_module(module_id)
        if config.target_entropy not in (None, "auto"):
            return float(config.target_entropy)
        actions = self.module[module_id].action_space.n
        return config.target_entropy_fraction * math.log(actions)

    # One epoch

    def learn_epoch(
        self,
        epoch: int,
        batches: Iterator[dict[str, np.ndarray]],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, float]:
        """Takes `updates_per_epoch` batches and returns the means of all metrics.

        Args:
            epoch: decides whether the entropy target is scheduled yet.
            batches: minibatches as `AugmentedReplay.sample` gives them, this
                learner's share of the pairs.
            on_progress: called with (batches done, batches in all).

        Raises:
            FloatingPointError: when a loss or a gradient norm is not finite.
        """
        started = time.perf_counter()
        scheduled = epoch >= self.config.tes_start_epoch
        total, sums = self.config.updates_per_epoch, {}
        for done in range(total):
            batch = next(batches, None)
            if batch is None:
                raise RuntimeError(f"Replay gave {done} batches of the {total} needed.")
            values = self._learn(batch, f"at update {done} of epoch {epoch}")
            if scheduled:
                self._lower_target(values["entropy"])
            for key, value in values.items():
                sums[key] = sums.get(key, 0.0) + value
            if on_progress is not None:
                on_progress(done + 1, total)
        self._weights_seq_no += 1
        means = {key: value / total for key, value in sums.items()}
        seconds = time.perf_counter() - started
        return means | {"updates_per_s": total / seconds, "learn_s": seconds}

    def _learn(self, rows: dict[str, np.ndarray], when: str) -> dict[str, float]:
        """Takes one gradient step; returns what was measured before it."""
        transitions = to_transitions(rows, self._device)
        loss = self.compute_losses(
            fwd_out=self.module.forward_train({DEFAULT_MODULE_ID: transitions}),
            batch={DEFAULT_MODULE_ID: transitions},
        )
        gradients = self.compute_gradients(loss)
        gradients = self.postprocess_gradients(gradients)
        # All values in one look, which on a GPU means one wait.
        names, tensors = zip(*self._step_values.items(), strict=True)
        values = dict(zip(names, torch.stack(tensors).tolist(), strict=True))
        for name, value in values.items():
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"{name} ({value}) is not finite {when}: lower the learning rates."
                )
        self.apply_gradients(gradients)
        self._move_targets()
        return values

    @override(SACTorchLearner)
    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: Any,
        batch: dict[str, Tensor],
        fwd_out: dict[str, Tensor],
    ) -> Tensor:
        """Returns the sum of all losses; each reaches one optimiser's parameters.

        RLlib's own losses take no weights for policy and temperature, so the pairs
        that are no transitions could not be left out.
        """
        parts, measured = objectives.all_losses(
            fwd_out,
            batch,
            self.curr_log_alpha[module_id],
            self.target_entropy[module_id],
            config,
        )
        self._step_values = {key: loss.detach() for key, loss in parts.items()}
        self._step_values |= measured
        return sum(parts.values())

    @override(SACTorchLearner)
    def compute_gradients(
        self, loss_per_module: dict[str, Tensor], **kwargs: Any
    ) -> dict[Tensor, Tensor]:
        """Returns the gradients of the sum, averaged over all learners."""
        for optimizer in self._optimizer_parameters:
            optimizer.zero_grad(set_to_none=True)
        sum(loss_per_module.values()).backward()
        gradients = {ref: param.grad for ref, param in self._params.items()}
        if peers.world_size() > 1:
            self._average(list(gradients.values()))
        return gradients

    def _average(self, gradients: list[Tensor]) -> None:
        """Averages gradients, losses and the entropy, so that targets stay equal."""
        shared = ("qf_loss", "qf_twin_loss", "policy_loss", "alpha_loss", "entropy")
        values = (self._step_values[key] for key in shared)
        peers.average([*gradients, *values], self._step_values["transitions"])

    @override(Learner)
    def postprocess_gradients(
        self, gradients_dict: dict[Tensor, Tensor]
    ) -> dict[Tensor, Tensor]:
        """Clips each optimiser's gradients by themselves and notes their norms."""
        for name, optimizer in self.get_optimizers_for_module(DEFAULT_MODULE_ID):
            own = self.filter_param_dict_for_optimizer(gradients_dict, optimizer)
            norm = self._get_clip_function()(
                own, grad_clip=self.config.grad_clip, grad_clip_by="global_norm"
            )
            if norm is None:
                norm = self._get_global_norm_function()(list(own.values()))
            self._step_values[f"{name}_grad_norm"] = norm
        return gradients_dict

    @override(TorchLearner)
    @torch.no_grad()
    def apply_gradients(self, gradients_dict: dict[Tensor, Tensor]) -> None:
        """Steps all optimisers and keeps alpha within its bounds."""
        for optimizer in self._optimizer_parameters:
            optimizer.step()
        low, high = self.config.alpha_min, self.config.alpha_max
        for log_alpha in self.curr_log_alpha.values():
            log_alpha.clamp_(math.log(low), math.log(high))

    @torch.no_grad()
    def _move_targets(self) -> None:
        for param, slow in self._target_pairs:
            slow.lerp_(param, self.config.tau)

    def _lower_target(self, entropy: float) -> None:
        self.target_entropy[DEFAULT_MODULE_ID].fill_(
            self.entropy_target.update(entropy)
        )

    # Saving

    @override(Learner)
    def get_state(
        self, components: Any = None, *, not_components: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        state = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(TES, components, not_components):
            state[TES] = {
                "log_alpha": self.curr_log_alpha[DEFAULT_MODULE_ID].item(),
                "entropy_target": asdict(self.entropy_target),
            }
        return state

    @override(Learner)
    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over the state, also one older than what this learner has reached."""
        if COMPONENT_RL_MODULE in state:
            self._weights_seq_no = 0
        super().set_state(state)
        if TES in state:
            saved = EntropyTarget(**state[TES]["entropy_target"])
            # How far it got is the checkpoint's, how it goes on the configuration's.
            self.entropy_target = replace(
                self.config.entropy_target(saved.target),
                mean=saved.mean,
                variance=saved.variance,
                calm_steps=saved.calm_steps,
            )
            with torch.no_grad():
                log_alpha = self.curr_log_alpha[DEFAULT_MODULE_ID]
                log_alpha.fill_(state[TES]["log_alpha"])
                target = self.target_entropy[DEFAULT_MODULE_ID]
                target.fill_(self.entropy_target.target)

    @override(TorchLearner)
    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Copies the moments: RLlib hands over the state's own, maybe read-only."""
        super()._set_optimizer_state(state)
        for optimizer in self._named_optimizers.values():
            for moments in optimizer.state.values():
                moments |= {key: value.clone() for key, value in moments.items()}
