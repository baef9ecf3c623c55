"""Plays the sequences of a probe set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.inside.anatomy import Arrays
from rllib_arrow.replay.chunk import DTYPES, Chunk

SEQUENCES, LENGTH = 16, 24
STEPS = 256  # of play, of which one stretch of LENGTH is kept per environment


def play_sequences(
    env: VectorTask,
    act: Callable[[Rows], np.ndarray],
    seed: int,
    rng: np.random.Generator,
) -> Arrays:
    """Returns one sequence of each environment, from anywhere in its play.

    Arrays [B, T, ...], named as the fields of a `Chunk`, rewards scaled for training.
    """
    shapes = Chunk(env.observation_space.shape, (), (), (), ())
    kept = Chunk(
        *(
            np.zeros((env.num_envs, LENGTH, *shape), DTYPES[name])
            for name, shape in shapes._asdict().items()
        )
    )
    begins = rng.integers(STEPS - LENGTH + 1, size=env.num_envs)
    rows = env.reset(seed)
    for step in range(begins.max() + LENGTH):
        actions = act(rows)
        at = step - begins
        [wanted] = np.nonzero((at >= 0) & (at < LENGTH))
        rewards = rows.rewards * np.float32(env.reward_scale)
        row = Chunk(rows.obs, actions, rewards, rows.is_first, rows.is_terminated)
        for field, values in zip(kept, row, strict=True):
            field[wanted, at[wanted]] = values[wanted]
        rows = env.step(actions)
    return kept._asdict()
