"""A continual run small enough for a test, and ways to compare two runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import tree
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_arrow import ARROWConfig, DV3Config, QUIVERConfig, TESSACConfig
from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.algorithms.continual_config import ContinualConfig

METHODS = {"ARROW": ARROWConfig, "DV3": DV3Config, "TES-SAC": TESSACConfig}
# ARROW with another default; what it may do is tried with ARROW.
ALL_METHODS = {**METHODS, "QUIVER": QUIVERConfig}


def tiny_config(method: str = "ARROW", **curriculum: Any) -> ContinualConfig:
    """Two MinAtar games, two epochs each, evaluated after every epoch."""
    config = ALL_METHODS[method]().continual(
        curriculum={
            "suite": "minatar",
            "tasks": ["breakout", "space_invaders"],
            "epochs_per_task": 2,
        }
        | curriculum,
        replay_capacity_chunks=16,
        # Not a divisor of the epoch's steps: what is left over must not get lost.
        replay_chunk_length=24,
    )
    if method == "TES-SAC":
        config.training(updates_per_epoch=6, cnn_depth=4, mlp_units=16)
        config.training(train_batch_size_per_learner=8, tes_start_epoch=1)
    else:
        config.training(
            model_size="nano",
            world_model_updates=4,
            actor_critic_updates=3,
            batch_size_B=4,
            batch_length_T=8,
            horizon_H=4,
            dream_starts=8,
        )
    config.env_runners(num_envs_per_env_runner=4, rollout_fragment_length=40)
    config.evaluation(evaluation_interval=1, evaluation_duration=4)
    return config


def train(algorithm: ContinualAlgorithm, epochs: int) -> list[dict[str, Any]]:
    return [algorithm.train() for _ in range(epochs)]


def scores(algorithm: ContinualAlgorithm) -> str:
    """The run's evaluations.csv."""
    return (algorithm.run_directory.local / "evaluations.csv").read_text()


def digest(algorithm: ContinualAlgorithm) -> str:
    """One number for weights, optimisers and schedules of the (first) learner."""
    state = algorithm.learner_group.get_state()["learner"]
    parts = (
        state["rl_module"][DEFAULT_MODULE_ID],
        state["optimizer"],
        state.get("tes"),
    )
    total = hashlib.sha256()
    for leaf in tree.flatten(parts):
        is_array = hasattr(leaf, "__array__")
        total.update(np.asarray(leaf).tobytes() if is_array else repr(leaf).encode())
    return total.hexdigest()


def save_three(
    algorithm: ContinualAlgorithm, directory: Path
) -> tuple[list[Path], tuple[str, str]]:
    """Saves after each of three epochs, as Tune does; returns where, and the end."""
    paths = [directory / f"checkpoint_00000{number}" for number in range(3)]
    for path in paths:
        train(algorithm, 1)
        algorithm.save_checkpoint(str(path))
    return paths, (digest(algorithm), scores(algorithm))


def weight_sum(learner: Any) -> float:
    """A number that differs as soon as any weight of two learners does."""
    parameters = learner.module[DEFAULT_MODULE_ID].parameters()
    return sum(float(p.detach().double().sum()) for p in parameters)
