"""Films an agent at play: the frames, beside what its world model makes of them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from ray.rllib.core import (
    COMPONENT_LEARNER,
    COMPONENT_LEARNER_GROUP,
    COMPONENT_RL_MODULE,
    DEFAULT_MODULE_ID,
)
from ray.rllib.core.rl_module import RLModule

from rllib_arrow.algorithms.acting import ActingPolicy
from rllib_arrow.checkpoints.restore_to_act import restore_to_act
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.base import VectorTask
from rllib_arrow.envs.suites import make_task
from rllib_arrow.files import write_aside
from rllib_arrow.models.images import images_to_uint8
from rllib_arrow.seeding import derive_seed

STEPS = 300  # at most, so that a film can be attached to an issue
SIDE = 128  # pixels a frame is shown with, at least
GAP = 4  # between truth and model
COLOURS = 64
FRAME_MS = 70
# The learner's module: that of the env runners has no decoder.
MODULE = Path(
    COMPONENT_LEARNER_GROUP, COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
)


def film_checkpoint(
    checkpoint: Path, directory: Path, tasks: Sequence[str] | None = None
) -> list[Path]:
    """Writes a GIF per task into the directory; returns their paths."""
    algorithm = restore_to_act(checkpoint)
    try:
        return write_films(
            directory,
            RLModule.from_checkpoint((checkpoint.resolve() / MODULE).as_posix()),
            algorithm.curriculum,
            tasks or algorithm.curriculum.task_names,
            seed=algorithm.config.seed,
            **algorithm.config.env_options,
        )
    finally:
        algorithm.stop()


def write_films(
    directory: Path,
    module: RLModule,
    curriculum: Curriculum,
    tasks: Sequence[str],
    *,
    seed: int,
    **env_options: Any,
) -> list[Path]:
    """Writes one GIF per task, named after it; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for task in tasks:
        env = make_task(curriculum.suite, curriculum.spec(task), 1, **env_options)
        try:
            frames = film(module, env, derive_seed(seed, "film", task))
        finally:
            env.close()
        paths.append(directory / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', task)}.gif")
        write_gif(paths[-1], frames)
    return paths


@torch.no_grad()
def film(
    module: RLModule, env: VectorTask, seed: int, steps: int = STEPS
) -> np.ndarray:
    """Plays one episode; returns uint8 [T, H, W, 3], truth and model side by side.

    A module without a decoder (TES-SAC's) is shown playing, and that is all.
    """
    policy, rows, shots = ActingPolicy(module, 1, seed), env.reset(seed), []
    for _ in range(steps):
        actions = policy(rows.obs, rows.is_first)
        shots.append(_side_by_side(rows.obs[0], _imagined(module, policy.state)))
        if rows.is_last[0]:
            break
        rows = env.step(actions)
    return np.stack(shots)


def _imagined(module: RLModule, state: tuple[torch.Tensor, ...]) -> np.ndarray | None:
    if not hasattr(module, "decoder"):
        return None
    return images_to_uint8(module.decoder(torch.cat(state[:2], dim=-1)))[0].numpy()


def _side_by_side(truth: np.ndarray, model: np.ndarray | None) -> np.ndarray:
    truth = _enlarged(truth)
    if model is None:
        return truth
    gap = np.full((len(truth), GAP, 3), 255, np.uint8)
    return np.concatenate([truth, gap, _enlarged(model)], axis=1)


def _enlarged(frame: np.ndarray) -> np.ndarray:
    times = -(-SIDE // len(frame))
    frame = frame.repeat(times, axis=0).repeat(times, axis=1)
    return frame if frame.shape[2] == 3 else frame.repeat(3, axis=2)


def write_gif(path: Path, frames: Sequence[np.ndarray]) -> None:
    """Writes frames [H, W, 3] as an animation that repeats."""
    # One palette for all, so that a frame need only hold what has changed.
    sample = np.concatenate(frames[:: max(1, len(frames) // 16)])
    palette = Image.fromarray(sample).quantize(COLOURS)
    first, *others = (
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    )
    data = io.BytesIO()
    first.save(
        data,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=FRAME_MS,
        loop=0,
    )
    write_aside(path, data.getvalue())
