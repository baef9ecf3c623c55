"""One epoch of gradient steps: the world model, then actor and critic in dreams."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from ray.rllib.core import COMPONENT_OPTIMIZER, DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from torch import Tensor
from torch import distributed as dist

from rllib_arrow.algorithms.dv3.compiling import (
    find_compiler,
    keep_compiled_code,
    require_compiler,
    wants_compiled,
)
from rllib_arrow.algorithms.dv3.means import Means
from rllib_arrow.algorithms.dv3.memory import keep_freed_memory
from rllib_arrow.algorithms.dv3.objectives import Encoded
from rllib_arrow.algorithms.dv3.parts import CompiledParts, Parts
from rllib_arrow.algorithms.dv3.peers import all_agree, average, rank, world_size
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.models.rssm import Posterior
from rllib_arrow.seeding import derive_seed

COMPILED = "compiled"


class DV3Learner(TorchLearner):
    """Trains a DV3RLModule, alone or in step with other learners.

    RLlib's `update` and its connectors are not used: an epoch is one call, and its
    batches come straight from replay. Gradients of several learners are averaged in
    one all-reduce per optimiser step.
    """

    # Building

    def build(self) -> None:
        """Builds module and optimisers; see `TorchLearner.build`."""
        super().build()
        # With a seed RLlib makes CPU builds of torch deterministic, and torch then
        # fills all new memory before use: a pass over memory per layer, for nothing.
        torch.utils.deterministic.fill_uninitialized_memory = False
        if self._device.type == "cpu":
            keep_freed_memory()
        self.net: DV3RLModule = self.module[DEFAULT_MODULE_ID]
        self._compute(self._decides_to_compile())

    def _decides_to_compile(self) -> bool:
        """Returns what `use_compile` comes to here; the same for all learners."""
        if self.config.use_compile is True:
            require_compiler("use_compile (True)")
        on_cpu = self._device.type == "cpu"
        able = wants_compiled(self.config) and on_cpu and find_compiler() is not None
        return all_agree(able) or self.config.use_compile is True

    def _compute(self, compiled: bool) -> None:
        """Has updates computed compiled, or one operation after the other."""
        if compiled:
            keep_compiled_code()
        self.is_compiled = compiled
        self.parts = (CompiledParts if compiled else Parts)(self.net, self.config)

    def _make_module(self) -> Any:
        """Starts the weights from the run's seed, leaving torch's own stream alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.config.seed, "init"))
            return super()._make_module()

    def configure_optimizers_for_module(
        self, module_id: str, config: Any = None
    ) -> None:
        """Registers Adam for the world model, the actor and the critic."""
        net = self.module[module_id]
        world_model = torch.nn.ModuleList(net.world_model_parts())
        for name, part, lr, eps in (
            ("world_model", world_model, config.world_model_lr, 1e-8),
            ("actor", net.actor, config.actor_lr, 1e-5),
            ("critic", net.critic, config.critic_lr, 1e-5),
        ):
            params = list(part.parameters())
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=name,
                optimizer=torch.optim.Adam(params, lr=lr, eps=eps, fused=True),
                params=params,
            )

    def _make_modules_ddp_if_necessary(self) -> None:
        """Gives all learners rank 0's weights; gradients are averaged in `_descend`."""
        if world_size() > 1:
            for tensor in self.module[DEFAULT_MODULE_ID].state_dict().values():
                dist.broadcast(tensor, src=0)

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns RLlib's state, and which way the numbers were computed."""
        return super().get_state(*args, **kwargs) | {COMPILED: self.is_compiled}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over the state, also one older than what this learner has reached.

        It goes on computing as the learner did that the state comes from: the last
        digits differ between compiled code and the code as it stands.
        """
        self._weights_seq_no = 0
        super().set_state(state)
        compiled = state.get(
            COMPILED, COMPONENT_OPTIMIZER not in state and self.is_compiled
        )
        if compiled != self.is_compiled:
            if compiled:
                require_compiler("The checkpoint is of a run with compiled updates")
            self._compute(compiled)

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Copies the moments into the memory layout of their weights.

        RLlib hands over arrays that may be shared and read-only, and a pickled array
        has lost its channels-last layout, which fused Adam takes for granted.
        """
        super()._set_optimizer_state(state)
        for optimizer in self._named_optimizers.values():
            for param, moments in optimizer.state.items():
                for key in ("exp_avg", "exp_avg_sq"):
                    moments[key] = torch.empty_like(param.data).copy_(moments[key])

    def compute_loss_for_module(self, **kwargs: Any) -> Tensor:
        """Refuses: a single loss on a single batch is not how this learner learns."""
        raise NotImplementedError("DV3Learner learns by learn_epoch, not by update.")

    # One epoch

    def learn_epoch(
        self,
        epoch: int,
        batches: Iterator[dict[str, np.ndarray]],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, float]:
        """Takes the epoch's minibatches and returns the means of all metrics.

        Args:
            epoch: names this epoch's random stream, so a resumed run continues it.
            batches: minibatches as `AugmentedReplay.sample` gives them, this
                learner's share of the sequences.
            on_progress: called with (batches done, batches in all).

        Raises:
            FloatingPointError: when a loss or a gradient norm is not finite.
        """
        started = time.perf_counter()
        seed = derive_seed(self.config.seed, "learner", epoch, rank())
        self._generator = torch.Generator(self._device).manual_seed(seed)
        total = self.config.minibatches().count
        world_model, actor_critic = Means(epoch), Means(epoch)
        self._sequence_losses: list[Tensor] = []
        for done in range(total):
            batch = self._next_batch(batches, done, total)
            if self.config.interleaved or done < self.config.world_model_updates:
                metrics, posterior = self.update_world_model(batch)
                world_model.add(metrics)
            else:
                with torch.no_grad():
                    _, posterior = self._posterior(batch)
            if self.config.interleaved or done >= self.config.world_model_updates:
                actor_critic.add(self.update_actor_critic(posterior, batch))
            if on_progress is not None:
                on_progress(done + 1, total)
        means = world_model.result() | actor_critic.result()
        self._weights_seq_no += 1
        seconds = time.perf_counter() - started
        return means | {
            "updates_per_s": (world_model.count + actor_critic.count) / seconds,
            "learn_s": seconds,
        }

    def take_sequence_losses(self) -> np.ndarray:
        """Returns the last epoch's world-model losses by sequence: [updates, B]."""
        collected, self._sequence_losses = self._sequence_losses, []
        return torch.stack(collected).cpu().numpy() if collected else np.empty((0, 0))

    def _next_batch(
        self, batches: Iterator[dict[str, np.ndarray]], done: int, total: int
    ) -> dict[str, Tensor]:
        """Returns the next batch, time-major, on the learner's device."""
        batch = next(batches, None)
        if batch is None:
            raise RuntimeError(f"Replay gave {done} batches of the {total} needed.")
        return {key: self._to_device(value) for key, value in batch.items()}

    def _to_device(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array.swapaxes(0, 1)))
        if self._device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)

    # The world model

    def update_world_model(
        self, batch: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Posterior]:
        """Takes one gradient step; returns its metrics and the (detached) states."""
        encoded, posterior = self._posterior(batch)
        loss, metrics, by_sequence = self.parts.world_model_loss(
            encoded.images, posterior, batch["rewards"], batch["is_terminated"]
        )
        if by_sequence is not None:
            self._sequence_losses.append(by_sequence)
        metrics |= self._descend(loss, "world_model")
        return metrics, Posterior(*(part.detach() for part in posterior))

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
        groups = self.net.size.latent_groups
        noise = self._uniform(self.config.horizon_H, len(starts), groups + 1)
        dream = self.parts.dream(starts, noise)
        valued = self.parts.value_dream(dream.states, dream.probs, starts_continue)
        return_range = self._track_return_range(valued.returns)
        loss, metrics = self.parts.actor_critic_loss(
            valued, dream.actions, return_range
        )
        metrics |= self._descend(loss, "actor", "critic")
        self._move_slow_critic()
        return metrics

    def _draw_starts(
        self, posterior: Posterior, is_terminated: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns starting states [N, state_units] and whether they go on, bool [N]."""
        states, goes_on = posterior.states.flatten(0, 1), ~is_terminated.flatten()
        wanted = -(-(self.config.dream_starts or 0) // world_size())
        if 0 < wanted < len(states):
            order = torch.randperm(
                len(states), generator=self._generator, device=self._device
            )
            return states[order[:wanted]], goes_on[order[:wanted]]
        return states, goes_on

    @torch.no_grad()
    def _track_return_range(self, returns: Tensor) -> Tensor:
        """Moves the running percentiles; returns the range between them."""
        gathered = [torch.empty_like(returns) for _ in range(world_size())]
        if len(gathered) > 1:
            dist.all_gather(gathered, returns)
            returns = torch.cat(gathered)
        percentiles = torch.quantile(
            returns.flatten(), returns.new_tensor([0.05, 0.95])
        )
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
            limit = getattr(self.config, f"{name}_grad_clip_by_global_norm")
            norm = torch.nn.utils.clip_grad_norm_(params, limit)
            norms[f"{name}_grad_norm"] = norm
            optimizer.step()
        return norms
