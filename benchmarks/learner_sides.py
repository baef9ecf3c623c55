"""One update of each learner that `benchmarks.learner` compares, served in turns.

python -m benchmarks.learner_sides compiled|mixed|eager|rllib|plain SCALE THREADS
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from benchmarks.learner_plain import PlainLearner
from benchmarks.turns import serve
from rllib_arrow.algorithms.dv3.dv3 import DV3Config
from rllib_arrow.algorithms.dv3.learner import DV3Learner
from rllib_arrow.algorithms.dv3.rl_module import DV3RLModule

Batch = dict[str, np.ndarray]
Update = Callable[[], object]


class Scale(NamedTuple):
    """Sizes of the model, the image, the action space and the update."""

    model_size: str
    side: int
    actions: int
    batch_size: int
    length: int
    horizon: int
    starts: int  # dreams, 0 for one from each state
    runs: int  # updates timed at once


SCALES = {
    # As RLlib, sheeprl and r2dreamer do it: a dream from each state.
    "paper_512_dreams": Scale("S", 64, 18, 16, 32, 15, 0, 1),
    "paper": Scale("S", 64, 18, 16, 32, 15, 128, 1),
    "desk": Scale("micro", 16, 6, 8, 16, 12, 64, 10),
    "desk_large": Scale("micro", 16, 6, 16, 32, 15, 128, 10),
}


def random_batch(scale: Scale) -> Batch:
    """Returns a minibatch as replay gives it."""
    rng = np.random.default_rng(0)
    rows = (scale.batch_size, scale.length)
    shape = (*rows, scale.side, scale.side, 3)
    return {
        "obs": rng.integers(0, 256, shape, dtype=np.uint8),
        "actions": rng.integers(0, scale.actions, rows),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "is_first": rng.random(rows) < 0.02,
        "is_terminated": rng.random(rows) < 0.02,
    }


def our_config(scale: Scale) -> DV3Config:
    """Returns this package's settings, one update to an epoch."""
    return DV3Config().training(
        model_size=scale.model_size,
        world_model_updates=1,
        actor_critic_updates=1,
        interleaved=True,
        batch_size_B=scale.batch_size,
        batch_length_T=scale.length,
        horizon_H=scale.horizon,
        dream_starts=scale.starts,
    )


def our_spec(scale: Scale) -> RLModuleSpec:
    """Describes this package's networks."""
    shape = (scale.side, scale.side, 3)
    return RLModuleSpec(
        module_class=DV3RLModule,
        observation_space=gym.spaces.Box(0, 255, shape, np.uint8),
        action_space=gym.spaces.Discrete(scale.actions),
        model_config={"model_size": scale.model_size},
    )


def our_update(scale: Scale, use_compile: bool = False, mixed: bool = False) -> Update:
    """Returns one update of this package's learner, from replay's rows on."""
    spec = our_spec(scale).as_multi_rl_module_spec()
    config = our_config(scale).training(use_compile=use_compile, mixed_precision=mixed)
    learner = DV3Learner(config=config, module_spec=spec)
    learner.build()
    batch = random_batch(scale)
    return lambda: learner.learn_epoch(0, iter([batch]))


def compiled_update(scale: Scale) -> Update:
    """Returns the same, compiled."""
    return our_update(scale, use_compile=True)


def mixed_update(scale: Scale) -> Update:
    """Returns the same, compiled and with mixed precision."""
    return our_update(scale, use_compile=True, mixed=True)


def plain_update(scale: Scale) -> Update:
    """Returns one update of the straightforward learner, from tensors on."""
    net, config = our_spec(scale).build(), our_config(scale)
    return PlainLearner(net, config, random_batch(scale)).update


def rllib_update(scale: Scale) -> Update:
    """Returns one update of RLlib's DreamerV3 learner, from float tensors on."""
    from ray.rllib.algorithms.dreamerv3.dreamerv3 import DreamerV3Config
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.policy.sample_batch import SampleBatch

    if scale.starts:
        raise ValueError(f"RLlib dreams from all states, not from {scale.starts}.")
    config = DreamerV3Config().training(
        model_size=scale.model_size,
        batch_size_B=scale.batch_size,
        batch_length_T=scale.length,
        horizon_H=scale.horizon,
    )
    images = gym.spaces.Box(-1.0, 1.0, (scale.side, scale.side, 3), np.float32)
    spaces = {DEFAULT_MODULE_ID: (images, gym.spaces.Discrete(scale.actions))}
    spec = config.get_multi_rl_module_spec(spaces=spaces)
    learner = config.get_default_learner_class()(config=config, module_spec=spec)
    learner.build()
    batch = random_batch(scale)
    batch["obs"] = batch["obs"].astype(np.float32) / 127.5 - 1.0
    batch["actions"] = np.eye(scale.actions, dtype=np.float32)[batch["actions"]]
    batch["is_first"] = batch["is_first"].astype(np.float32)
    rows = {key: torch.from_numpy(value) for key, value in batch.items()}
    return lambda: learner.update(batch=SampleBatch(rows).as_multi_agent())


UPDATES = {
    "compiled": compiled_update,
    "mixed": mixed_update,
    "eager": our_update,
    "plain": plain_update,
    "rllib": rllib_update,
}


def main() -> None:
    """Builds the side named on the command line and serves it."""
    name, scale, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    serve(UPDATES[name](SCALES[scale]), SCALES[scale].runs)


if __name__ == "__main__":
    main()
