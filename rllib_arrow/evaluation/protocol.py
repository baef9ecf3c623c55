"""Whole episodes, fairly counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rllib_arrow.envs.base import Rows, VectorTask


class EpisodeScores(NamedTuple):
    """Raw returns of complete episodes, in order of environment, then of time."""

    returns: tuple[float, ...]
    cut: int = 0  # how many of the episodes were cut, by a limit of steps

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
    env: VectorTask,
    act: Callable[[Rows], np.ndarray],
    episodes: int,
    seed: int,
    max_steps: int | None = None,
    timeout_s: float | None = None,
) -> EpisodeScores:
    """Plays a fixed number of complete episodes in each environment.

    Taking the first episodes to finish, wherever they finish, would favour short
    ones. Here every environment owes its share from the start, and what it plays
    after that is not looked at. An episode that does not end within `max_steps` is
    cut there and its return so far counts; what is left of it is passed over, unless
    it is as long again, which counts as another that was cut. `TimeoutError` if all
    takes longer than `timeout_s`.
    """
    owed = episodes_per_env(episodes, env.num_envs)
    returns: list[list[float]] = [[] for _ in range(env.num_envs)]
    running, lengths, cut = np.zeros(env.num_envs), np.zeros(env.num_envs, int), 0
    passed_over = np.zeros(env.num_envs, bool)  # in what follows after a cut
    until = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
    rows = env.reset(seed)
    while owed.any():
        if time.monotonic() > until:
            raise TimeoutError
        rows = env.step(act(rows))
        running += rows.rewards
        # The row after a last one is the first of the next episode, not a step of it.
        lengths = np.where(rows.is_first, 0, lengths + 1)
        endless = lengths >= (max_steps or math.inf)
        for i in np.flatnonzero(rows.is_last | endless):
            if owed[i] and not (passed_over[i] and rows.is_last[i]):
                returns[i].append(float(running[i]))
                owed[i] -= 1
                cut += not rows.is_last[i]
            passed_over[i] = not rows.is_last[i]
            running[i] = lengths[i] = 0.0
    return EpisodeScores(tuple(score for one in returns for score in one), cut)
