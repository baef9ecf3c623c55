"""A small learner and random batches, shared by the tests of DV3's parts."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_arrow.algorithms.dv3.dv3 import DV3Config
from rllib_arrow.algorithms.dv3.learner import DV3Learner
from rllib_arrow.models.size import Variant

SIDE, ACTIONS, B, T = 16, 5, 4, 6

ALL_VARIANTS = dict.fromkeys(Variant._fields, True)
# Every method of docs/beyond.md at once.
ALL_BEYOND = {
    "rehearsal_interval": 1,
    "rehearsal_siblings": 2,
    "rehearsal_through": "logits",
    "cloning": True,
    "advantage_scale": "state",
    "ewc_scale": 0.01,
    "l2_init_scale": 0.1,
}

SMALL = {
    "model_size": "nano",
    "world_model_updates": 3,
    "actor_critic_updates": 2,
    "batch_size_B": B,
    "batch_length_T": T,
    "horizon_H": 4,
    "dream_starts": 10,
}


def make_config(seed: int = 3, **changes: Any) -> DV3Config:
    config = DV3Config().training(**SMALL | changes)
    config.seed = seed
    return config


def make_spec(
    config: DV3Config, side: int = SIDE, actions: int = ACTIONS, **changes: Any
) -> Any:
    spec = config.get_default_rl_module_spec()
    spec.observation_space = gym.spaces.Box(0, 255, (side, side, 3), np.uint8)
    spec.action_space = gym.spaces.Discrete(actions)
    names = ("model_size", *Variant._fields)
    spec.model_config = {name: getattr(config, name) for name in names}
    spec.model_config["learns_spread"] = config.advantage_scale == "state"
    for name, value in changes.items():
        setattr(spec, name, value)
    return spec


def make_learner(
    side: int = SIDE, actions: int = ACTIONS, seed: int = 3, **changes: Any
) -> DV3Learner:
    config = make_config(seed, **changes)
    spec = make_spec(config, side, actions).as_multi_rl_module_spec()
    learner = DV3Learner(config=config, module_spec=spec)
    learner.build()
    return learner


def random_batches(
    seed: int = 0,
    side: int = SIDE,
    actions: int = ACTIONS,
    b: int = B,
    t: int = T,
    with_policy: bool = False,
) -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    while True:
        batch = {
            "obs": rng.integers(0, 256, (b, t, side, side, 3), dtype=np.uint8),
            "actions": rng.integers(0, actions, (b, t)),
            "rewards": rng.normal(size=(b, t)).astype(np.float32),
            "is_first": rng.random((b, t)) < 0.1,
            "is_terminated": rng.random((b, t)) < 0.1,
        }
        if with_policy:
            policy = rng.dirichlet(np.ones(actions), (b, t))
            values = rng.normal(size=(b, t, 1))
            batch["policy"] = np.concatenate([policy, values], -1).astype(np.float16)
        yield batch
