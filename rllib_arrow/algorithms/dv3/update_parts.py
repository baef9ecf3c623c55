"""The parts of an update, as they stand or compiled.

Compiled are the parts around the two loops (through a sequence, through a dream) and
blocks of a few steps of the loops themselves: a whole loop takes minutes to compile,
and single steps spend their time on being called. A handful of graphs, each without a
break, whatever the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rllib_arrow.algorithms.dv3 import cloning, objectives, rehearsal, spread
from rllib_arrow.algorithms.dv3.products import (
    BY_ONEDNN,
    WORTH_ONEDNN,
    by_mkl,
    multiplied_by,
)
from rllib_arrow.algorithms.dv3.rl_module import Dream, DV3RLModule
from rllib_arrow.models import unroll
from rllib_arrow.models.layers import StateLinear
from rllib_arrow.models.rssm import RSSM, Posterior

LONGEST_BLOCK = 5  # steps compiled into one graph
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

    def __init__(self, net: DV3RLModule, config: Any) -> None:
        self.net = net
        self.config = config
        for layer in net.modules():
            if isinstance(layer, StateLinear):
                layer.by_index = self.state_by_index
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


class CompiledParts(Parts):
    """Computes the same with `torch.compile`; the first update waits for it."""

    state_by_index = True

    def __init__(self, net: DV3RLModule, config: Any) -> None:
        super().__init__(net, config)
        size = net.size
        largest = config.batch_size_B * size.mlp_units * 3 * size.gru_units
        loop = by_mkl if largest < WORTH_ONEDNN else lambda function: function
        self.loops = unroll.Loops(
            loop(compiled(unroll.steps_forward)),
            loop(compiled(unroll.steps_back)),
            steps=steps_in_block(config.batch_length_T),
            variant=compiled(RSSM.observe_steps),
        )
        for name in AROUND_LOOPS:
            setattr(self, name, compiled(getattr(self, name)))
        self._dream_steps = compiled(partial(objectives.dream_steps, net, config))

    def computing(self) -> AbstractContextManager[None]:
        """Returns the context in which oneDNN multiplies, where that is faster."""
        return multiplied_by(BY_ONEDNN)

    def dream(self, starts: Tensor, noise: Tensor) -> Dream:
        """Dreams in blocks of steps, and leaves the actor's graph to `value_dream`."""
        states, actions = [starts.unsqueeze(0)], []
        for block in noise.split(steps_in_block(len(noise))):
            more, taken = self._dream_steps(states[-1][-1], block)
            states.append(more)
            actions.append(taken)
        return Dream(torch.cat(states), torch.cat(actions), None)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as one graph for the shapes it meets first.

    torch looks for a graph among all that came from the same code, and counts them. A
    copy of the code keeps apart the parts of an update, and those of two learners.
    """

    def part(*args: Any) -> Any:
        return function(*args)

    part.__code__ = part.__code__.replace()
    return torch.compile(part, fullgraph=True, dynamic=False, backend=BACKEND)


def steps_in_block(steps: int) -> int:
    """Returns the largest divisor of `steps` that is not above LONGEST_BLOCK."""
    return next(n for n in range(LONGEST_BLOCK, 0, -1) if steps % n == 0)
