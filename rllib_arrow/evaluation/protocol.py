"""Whole episodes, fairly counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rllib_arrow.envs.base import Rows, VectorTask


class EpisodeScores(NamedTuple):
    """Raw returns of complete episodes, in order of environment, then of time."""

    returns: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        return float(np.std(self.returns))


def episodes_per_env(episodes: int, num_envs: int) -> np.ndarray:
    """Shares out the episodes before anyone has played: int [N], as even as can be."""
    shares = np.full(num_envs, episodes // num_envs)
    shares[: episodes % num_envs] += 1
    return shares


def play_episodes(
    env: VectorTask, act: Callable[[Rows], np.ndarray], episodes: int, seed: int
) -> EpisodeScores:
    """Plays a fixed number of complete episodes in each environment.

    Taking the first episodes to finish, wherever they finish, would favour short
    ones. Here every environment owes its share from the start, and what it plays
    after that is not looked at.
    """
    owed = episodes_per_env(episodes, env.num_envs)
    returns: list[list[float]] = [[] for _ in range(env.num_envs)]
    running = np.zeros(env.num_envs)
    rows = env.reset(seed)
    while owed.any():
        rows = env.step(act(rows))
        running += rows.rewards
        for i in np.flatnonzero(rows.is_last):
            if owed[i]:
                returns[i].append(float(running[i]))
                owed[i] -= 1
            running[i] = 0.0
    return EpisodeScores(tuple(score for one in returns for score in one))
