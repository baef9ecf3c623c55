"""One epoch of gradient steps: the world model, then actor and critic in dreams."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from ray.rllib.core import COMPONENT_OPTIMIZER, DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from torch import Tensor
from torch import distributed as dist

from rllib_arrow.algorithms.dv3.ahead import ready_ahead
from rllib_arrow.algorithms.dv3.compiling import require_compiler, wants_compiled
from rllib_arrow.algorithms.dv3.cuda_graphs import RecordedUpdate
from rllib_arrow.algorithms.dv3.gradient_steps import GradientSteps, Learned, Trains
from rllib_arrow.algorithms.dv3.means import Means
from rllib_arrow.algorithms.dv3.memory import keep_freed_memory
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule
from rllib_arrow.algorithms.dv3.update_parts import CompiledParts, Parts
from rllib_arrow.algorithms.peers import all_agree, rank, world_size
from rllib_arrow.errors import UserError
from rllib_arrow.models.native.build import is_buildable, keep_compiled_code
from rllib_arrow.seeding import derive_seed

COMPILED = "compiled"
OF_COMPILED = "The checkpoint is of a run with compiled updates"


class DV3Learner(GradientSteps, TorchLearner):
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
        else:
            torch.cuda.set_device(self._device)  # whose streams record updates
        self.net: DV3RLModule = self.module[DEFAULT_MODULE_ID]
        self._generator = torch.Generator(self._device)
        self._return_quantiles = torch.tensor([0.05, 0.95], device=self._device)
        params = self.net.parameters() if self.config.l2_init_scale else ()
        self._initial_weights = {param: param.detach().clone() for param in params}
        self._lacks_compiler = False
        self._compute(self._decides_to_compile())
        # All that was loaded stays; the collector need not look at it with each update.
        gc.freeze()

    def _decides_to_compile(self) -> bool:
        """Returns what `use_compile` comes to here; the same for all learners."""
        if self.config.use_compile is True:
            require_compiler("use_compile (True)")
        on_cpu = self._device.type == "cpu"
        able = wants_compiled(self.config) and on_cpu and is_buildable()
        return all_agree(able, self._device) or self.config.use_compile is True

    def _compute(self, compiled: bool) -> None:
        """Has updates computed compiled, or one operation after the other."""
        if compiled:
            keep_compiled_code()
        self.is_compiled = self.is_about_to_compile = compiled
        self.parts = (CompiledParts if compiled else Parts)(self.net, self.config)
        self._forget_recordings()

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
        on_gpu = self._device.type == "cuda"
        rehearsal_lr = config.rehearsal_scale * config.actor_lr
        for name, part, lr, eps in (
            ("world_model", world_model, config.world_model_lr, 1e-8),
            ("actor", net.actor, config.actor_lr, 1e-5),
            ("critic", net.critic, config.critic_lr, 1e-5),
            ("rehearsal", config.rehearsal_interval and net.actor, rehearsal_lr, 1e-5),
            ("spread", getattr(net, "spread_head", None), config.critic_lr, 1e-5),
        ):
            if not part:
                continue
            params = list(part.parameters())
            self.register_optimizer(
                module_id=module_id,
                optimizer_name=name,
                optimizer=torch.optim.Adam(
                    params, lr=lr, eps=eps, fused=True, capturable=on_gpu
                ),
                params=params,
            )

    def _make_modules_ddp_if_necessary(self) -> None:
        """Gives all learners rank 0's weights; gradients are averaged in `_descend`."""
        if world_size() > 1:
            for tensor in self.module[DEFAULT_MODULE_ID].state_dict().values():
                dist.broadcast(tensor, src=0)

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns RLlib's state, and which way the numbers were computed."""
        compiled = self.is_compiled or self._lacks_compiler
        return super().get_state(*args, **kwargs) | {COMPILED: compiled}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over the state, also one older than what this learner has reached.

        It goes on computing as the learner did that the state comes from: the last
        digits differ between compiled code and the code as it stands. A compiler is
        asked for when there is something to compute: acting needs none.
        """
        self._weights_seq_no = 0
        super().set_state(state)
        self._forget_recordings()
        # A whole state that does not tell is older than the choice.
        before = self.is_compiled or self._lacks_compiler
        untold = COMPONENT_OPTIMIZER not in state and before
        able = self._device.type == "cpu" or self.config.use_compile is True
        compiled = able and state.get(COMPILED, untold)
        if compiled != self.is_compiled and (not compiled or is_buildable()):
            self._compute(compiled)
        self._lacks_compiler = compiled and not self.is_compiled

    def _set_optimizer_state(self, state: dict[str, Any]) -> None:
        """Copies the moments into the memory layout of their weights.

        RLlib hands over arrays that may be shared and read-only, and a pickled array
        has lost its channels-last layout, which fused Adam takes for granted.
        """
        # A part that is switched off by now leaves its moments behind.
        known = self._named_optimizers.keys() & state.keys()
        super()._set_optimizer_state({name: state[name] for name in known})
        for optimizer in self._named_optimizers.values():
            for group in optimizer.param_groups:  # of a run on another device
                group["capturable"] = self._device.type == "cuda"
            for param, moments in optimizer.state.items():
                for key, moment in moments.items():
                    if moment.shape == param.shape:
                        moments[key] = torch.empty_like(param.data).copy_(moment)

    def compute_loss_for_module(self, **kwargs: Any) -> Tensor:
        """Refuses: a single loss on a single batch is not how this learner learns."""
        raise NotImplementedError("DV3Learner learns by learn_epoch, not by update.")

    # One epoch

    def learn_epoch(
        self,
        epoch: int,
        batches: Iterator[dict[str, np.ndarray]],
        on_progress: Callable[[int, int], None] | None = None,
        rehearsed: Iterator[dict[str, np.ndarray]] | None = None,
    ) -> dict[str, float]:
        """Takes the epoch's minibatches and returns the means of all metrics.

        Args:
            epoch: names this epoch's random stream, so a resumed run continues it.
            batches: minibatches as `AugmentedReplay.sample` gives them, this
                learner's share of the sequences.
            on_progress: called with (batches done, batches in all).
            rehearsed: minibatches of what is long past, for rehearsal.

        Raises:
            FloatingPointError: when a loss or a gradient norm is not finite.
        """
        # All learners keep step, so all stop if one has no compiler.
        if not all_agree(not self._lacks_compiler, self._device):
            require_compiler(OF_COMPILED)
            if world_size() > 1:
                raise UserError(f"{OF_COMPILED}, but not every learner can compile.")
            self._compute(True)
            self._lacks_compiler = False
        started = time.perf_counter()
        seed = derive_seed(self.config.seed, "learner", epoch, rank())
        self._generator.manual_seed(seed)
        total = self.config.minibatches().count
        world_model, actor_critic, rehearsal = Means(epoch), Means(epoch), Means(epoch)
        self._sequence_losses: list[Tensor] = []
        batches = self._on_device(batches)
        rehearsed = self._on_device(rehearsed or iter(()))
        for done in range(total):
            batch = next(batches, None)
            if batch is None:
                raise RuntimeError(f"Replay gave {done} batches of the {total} needed.")
            with self.parts.computing():
                learned = self._update_for(done)(batch)
            world_model.add(learned.world_model)
            actor_critic.add(learned.actor_critic)
            if learned.actor_critic and self._is_rehearsal_due(actor_critic.count):
                rehearse = self._recorded("rehearsal", self.rehearse)
                with self.parts.computing():
                    rehearsal.add(rehearse(next(rehearsed)))
            if learned.by_sequence is not None:
                self._sequence_losses.append(learned.by_sequence)
            self.is_about_to_compile = False
            if on_progress is not None:
                on_progress(done + 1, total)
        learners = (world_model, actor_critic, rehearsal)
        means = {k: v for each in learners for k, v in each.result().items()}
        self._weights_seq_no += 1
        seconds = time.perf_counter() - started
        return means | {
            "updates_per_s": sum(each.count for each in learners) / seconds,
            "learn_s": seconds,
        }

    def _update_for(self, number: int) -> Callable[[dict[str, Tensor]], Learned]:
        """Returns what an epoch's minibatch of that number is for."""
        first_phase = number < self.config.world_model_updates
        trains = Trains(
            self.config.interleaved or first_phase,
            self.config.interleaved or not first_phase,
        )
        return self._recorded(trains, partial(self.take_update, trains))

    def _is_rehearsal_due(self, updates: int) -> bool:
        """Returns whether a rehearsal follows that actor-critic update of an epoch."""
        interval = self.config.rehearsal_interval
        return interval > 0 and updates % interval == 0

    def _recorded(self, key: Any, update: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the update, recorded if that is on a GPU: see `cuda_graphs`.

        Several learners talk to each other inside an update, which is not recorded.
        """
        if key not in self._updates:
            if self._device.type == "cuda" and world_size() == 1:
                update = RecordedUpdate(update, self._generator)
            self._updates[key] = update
        return self._updates[key]

    def _forget_recordings(self) -> None:
        """Drops recorded updates, which know tensors that are no more."""
        self._updates: dict[Any, Callable[[dict[str, Tensor]], Any]] = {}

    def take_sequence_losses(self) -> np.ndarray:
        """Returns the last epoch's world-model losses by sequence: [updates, B]."""
        collected, self._sequence_losses = self._sequence_losses, []
        return torch.stack(collected).cpu().numpy() if collected else np.empty((0, 0))

    def _on_device(
        self, batches: Iterator[dict[str, np.ndarray]]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the batches time-major on the learner's device.

        A GPU gets the next ones while it works; a CPU could only share itself.
        """
        if self._device.type == "cpu":
            return map(self._batch_to_device, batches)
        return ready_ahead(batches, self._batch_to_device)

    def _batch_to_device(self, batch: dict[str, np.ndarray]) -> dict[str, Tensor]:
        return {key: self._to_device(value) for key, value in batch.items()}

    def _to_device(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array.swapaxes(0, 1)))
        if self._device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)
