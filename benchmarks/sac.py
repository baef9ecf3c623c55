"""Gradient steps per second of TES-SAC, against RLlib's own SAC learner.

Both sides have the same networks, optimisers and transitions, in this process. RLlib's
side gets its batches ready made, scaled and converted; ours starts from replay's rows.

    python -m benchmarks.sac [--scale paper|desk]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from itertools import cycle
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.sac.sac import SACConfig
from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import (
    DefaultSACTorchRLModule,
)
from ray.rllib.algorithms.sac.torch.sac_torch_learner import SACTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from rllib_arrow import TESSACConfig
from rllib_arrow.algorithms.tes_sac.learner import TESSACLearner
from rllib_arrow.algorithms.tes_sac.rl_module import PixelSACCatalog
from rllib_arrow.algorithms.tes_sac.transitions import to_transitions

Rows = dict[str, np.ndarray]


class Scale(NamedTuple):
    """The sizes that decide how long a gradient step takes."""

    image_side: int
    num_actions: int
    cnn_depth: int
    mlp_units: int
    steps: int  # timed at once


SCALES = {"paper": Scale(64, 18, 32, 512, 4), "desk": Scale(16, 6, 16, 128, 50)}


def spaces(side: int, num_actions: int) -> dict[str, tuple[gym.Space, gym.Space]]:
    """Returns the spaces of RGB images and discrete actions, by module."""
    images = gym.spaces.Box(0, 255, (side, side, 3), np.uint8)
    return {DEFAULT_MODULE_ID: (images, gym.spaces.Discrete(num_actions))}


def build_ours(
    config: TESSACConfig, side: int = 16, num_actions: int = 6
) -> TESSACLearner:
    """Builds this package's learner, in this process."""
    spec = config.get_multi_rl_module_spec(spaces=spaces(side, num_actions))
    learner = config.learner_class(config=config, module_spec=spec)
    learner.build()
    return learner


def build_peer(
    config: TESSACConfig, side: int = 16, num_actions: int = 6
) -> SACTorchLearner:
    """Builds RLlib's learner and module with the settings and networks of `config`."""
    peer = (
        SACConfig()
        .training(
            gamma=config.gamma,
            tau=config.tau,
            actor_lr=config.actor_lr,
            critic_lr=config.critic_lr,
            alpha_lr=config.alpha_lr,
            initial_alpha=config.initial_alpha,
            target_entropy=config.target_entropy_fraction * math.log(num_actions),
            grad_clip=config.grad_clip,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=DefaultSACTorchRLModule, catalog_class=PixelSACCatalog
            ),
            model_config=config.model_config,
        )
    )
    spec = peer.get_multi_rl_module_spec(spaces=spaces(side, num_actions))
    learner = SACTorchLearner(config=peer, module_spec=spec)
    learner.build()
    return learner


def random_rows(
    rng: np.random.Generator, batch_size: int, side: int = 16, num_actions: int = 6
) -> Rows:
    """Returns pairs of rows that are all transitions, some of them terminal."""
    shape = (batch_size, 2)
    return {
        "obs": rng.integers(0, 256, (*shape, side, side, 3), np.uint8),
        "actions": rng.integers(num_actions, size=shape),
        "rewards": rng.normal(size=shape).astype(np.float32),
        "is_first": np.zeros(shape, bool),
        "is_terminated": rng.random(shape) < 0.1,
    }


def rllib_batch(rows: Rows) -> MultiAgentBatch:
    """Returns the rows' transitions as RLlib's learner wants them."""
    columns = to_transitions(rows, torch.device("cpu"))
    size = len(rows["actions"])
    batch = SampleBatch(columns | {"n_step": torch.ones(size)})
    return MultiAgentBatch({DEFAULT_MODULE_ID: batch}, env_steps=size)


def time_both(scale: Scale, rounds: int) -> tuple[float, float]:
    """Returns both sides' steps per second, the best of alternating rounds."""
    config = TESSACConfig().training(
        cnn_depth=scale.cnn_depth,
        mlp_units=scale.mlp_units,
        updates_per_epoch=scale.steps,
    )
    sizes = scale.image_side, scale.num_actions
    ours, peer = build_ours(config, *sizes), build_peer(config, *sizes)
    rng = np.random.default_rng(0)
    batch_size = config.train_batch_size_per_learner
    rows = [random_rows(rng, batch_size, *sizes) for _ in range(4)]
    batches = cycle([rllib_batch(r) for r in rows])

    def step_peer() -> None:
        for _ in range(scale.steps):
            peer.update(batch=next(batches))

    def step_ours() -> None:
        ours.learn_epoch(0, cycle(rows))

    times = [(_seconds(step_ours), _seconds(step_peer)) for _ in range(rounds + 1)]
    best = np.min(times[1:], axis=0)  # the first round warms up
    return scale.steps / best[0], scale.steps / best[1]


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Prints one JSON line per scale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, nargs="*", default=list(SCALES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in args.scale:
        ours, peer = time_both(SCALES[name], args.rounds)
        figure = {
            "name": f"sac_updates_{name}",
            "ours": round(ours, 3),
            "peer": round(peer, 3),
            "peer_name": "RLlib SACTorchLearner, equal network",
            "ratio": round(ours / peer, 3),
            "unit": "gradient steps/s",
        }
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
