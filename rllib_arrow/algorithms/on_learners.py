"""What the driver has each learner do, in the learner's own process."""

from __future__ import annotations

from functools import partial

import ray
from ray.actor import ActorHandle
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.learner import Learner

from rllib_arrow.algorithms.within_epoch import COMPILING, UpdateTeller
from rllib_arrow.ray_private import index_of, optimizers_of
from rllib_arrow.replay.actor import BatchStream


def learn_epoch(
    learner: Learner,
    *,
    replay: ActorHandle,
    epoch: int,
    on_progress: UpdateTeller | None,
) -> dict[str, float]:
    """Learns its share of every minibatch, fetched ahead of need; returns metrics."""
    config = learner.config
    open_stream = partial(
        BatchStream,
        replay,
        epoch=epoch,
        shard=index_of(learner),
        num_shards=max(1, config.num_learners),
        prefetch=config.replay_prefetch,
    )
    stream = open_stream(**config.minibatches()._asdict())
    besides = {}
    rehearsed = config.rehearsed_minibatches()
    if rehearsed.count:
        buffer = config.rehearsed_buffer
        besides["rehearsed"] = open_stream(**rehearsed._asdict(), buffer=buffer)
    # All learners keep step: one of them tells for all.
    leads = on_progress is not None and index_of(learner) == 0
    telling = {"on_progress": on_progress} if leads else {}
    if leads and getattr(learner, "is_about_to_compile", False):
        on_progress.announce(COMPILING)
    learned = learner.learn_epoch(epoch, stream, **besides, **telling)
    waited_s = sum(one.waited_s for one in (stream, *besides.values()))
    return learned | {"replay_wait_s": waited_s}


def learning_rates(learner: Learner) -> dict[str, float]:
    """Returns the learning rate of each optimiser, by name."""
    optimizers = optimizers_of(learner)
    return {name: o.param_groups[0]["lr"] for name, o in optimizers.items()}


def set_learning_rates(learner: Learner, *, rates: dict[str, float]) -> None:
    """Gives each optimiser its learning rate, whatever was restored with it."""
    for name, optimizer in optimizers_of(learner).items():
        for group in optimizer.param_groups:
            group["lr"] = rates[name]


def put_acting_weights(learner: Learner) -> ray.ObjectRef:
    """Returns a reference to what a runner needs to act as the policy stands."""
    module = learner.module[DEFAULT_MODULE_ID]
    return ray.put(module.get_state(inference_only=True))
