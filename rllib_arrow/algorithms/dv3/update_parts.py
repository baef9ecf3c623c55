"""The parts of an update, as they stand or compiled.

Compiled are the parts around the two loops (through a sequence, through a dream), by
torch: a handful of graphs, each without a break. The loops themselves, whose many small
steps would take torch minutes to compile, are in C++, and so are the convolutions, of
which torch's libraries make little with few channels: see `models/native`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rllib_arrow.algorithms.dv3 import cloning, objectives, rehearsal, spread
from rllib_arrow.algorithms.dv3.products import BY_ONEDNN, multiplied_by
from rllib_arrow.algorithms.dv3.rl_module import Dream, DV3RLModule
from rllib_arrow.models import unroll
from rllib_arrow.models.images import Decoder, Encoder
from rllib_arrow.models.layers import StateLinear
from rllib_arrow.models.native.adam import native_step
from rllib_arrow.models.native.loops import native_dream, native_loops
from rllib_arrow.models.rssm import Posterior
from rllib_arrow.models.size import PAPER

BACKEND = "inductor"
AROUND_LOOPS = (
    "encode",
    "world_model_loss",
    "value_dream",
    "actor_critic_loss",
    "rehearsal_loss",
    "cloning_loss",
    "spread_loss",
)


class Parts:
    """Computes the parts of an update one operation after the other."""

    # A sum of few weights beats a product with all, once it is not one more step.
    state_by_index = False

    def __init__(self, net: DV3RLModule, config: Any, native: bool = False) -> None:
        self.net = net
        self.config = config
        for layer in net.modules():
            if isinstance(layer, StateLinear):
                layer.by_index = self.state_by_index
            if isinstance(layer, Encoder | Decoder):
                layer.is_native = native
        self.loops = unroll.Loops()
        self.encode = partial(objectives.encode, net, config)
        self.world_model_loss = partial(
            objectives.world_model_loss,
            net,
            config,
            wants_sequences=config.replay_uses_losses,
        )
        self.value_dream = partial(objectives.value_dream, net, config)
        self.actor_critic_loss = partial(objectives.actor_critic_loss, config)
        self.rehearsal_loss = partial(rehearsal.rehearsal_loss, net, config)
        self.cloning_loss = partial(cloning.cloning_loss, net, config)
        self.spread_loss = partial(spread.spread_loss, net, config)

    def computing(self) -> AbstractContextManager[None]:
        """Returns the context in which all updates are to be computed."""
        return nullcontext()

    def unroll(self, encoded: objectives.Encoded, noise: Tensor) -> Posterior:
        """Goes through encoded sequences step by step."""
        return self.net.rssm.unroll(encoded.prepared, noise, self.loops)

    def dream(self, starts: Tensor, noise: Tensor) -> Dream:
        """Dreams; see `DV3RLModule.dream`."""
        with objectives.autocast(self.config, starts.device):
            return self.net.dream(starts, noise)

    def step(self, optimizer: torch.optim.Adam, limit: float) -> Tensor:
        """Takes a step, gradients clipped by their norm; returns the norm before."""
        params = optimizer.param_groups[0]["params"]
        norm = torch.nn.utils.clip_grad_norm_(params, limit)
        optimizer.step()
        return norm


class CompiledParts(Parts):
    """Computes the same with compiled code; the first update waits for it.

    The loops of a variant of the model, and those on a GPU, stay as they stand.
    """

    state_by_index = True

    def __init__(self, net: DV3RLModule, config: Any) -> None:
        self._is_native = next(net.parameters()).device.type == "cpu"
        super().__init__(net, config, self._is_native)
        self._loops_are_native = self._is_native and net.rssm.variant == PAPER
        if self._loops_are_native:
            self.loops = native_loops(net.size)
        for name in AROUND_LOOPS:
            setattr(self, name, compiled(getattr(self, name)))

    def computing(self) -> AbstractContextManager[None]:
        """Returns the context in which oneDNN multiplies, where that is faster."""
        return multiplied_by(BY_ONEDNN)

    def dream(self, starts: Tensor, noise: Tensor) -> Dream:
        """Dreams; the actor's graph is left to `value_dream`."""
        if self._loops_are_native:
            return Dream(
                *native_dream(self.net.rssm, self.net.actor, starts, noise), None
            )
        with torch.no_grad():
            return super().dream(starts, noise)._replace(probs=None)

    def step(self, optimizer: torch.optim.Adam, limit: float) -> Tensor:
        """Takes a step as `Parts` does."""
        if self._is_native:
            return native_step(optimizer, limit)
        return super().step(optimizer, limit)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as one graph for the shapes it meets first.

    torch looks for a graph among all that came from the same code, and counts them. A
    copy of the code keeps apart the parts of an update, and those of two learners.
    """

    def part(*args: Any) -> Any:
        return function(*args)

    part.__code__ = part.__code__.replace()
    # The networks of a learner stay the same: there is no need to look with each call.
    options = {"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe}
    return torch.compile(
        part, fullgraph=True, dynamic=False, backend=BACKEND, options=options
    )
