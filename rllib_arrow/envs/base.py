"""What every vector environment of this project looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from rllib_arrow.seeding import derive_seed


class Rows(NamedTuple):
    """One row per environment; see docs/architecture.md for what a row means.

    Later calls leave the arrays as they are, so rows may be kept without copying;
    an environment may read its own last rows again, so they must not be changed.
    """

    obs: np.ndarray  # uint8 [N, H, W, C]
    rewards: np.ndarray  # float32 [N], raw, arrived with obs
    is_first: np.ndarray  # bool [N]
    is_terminated: np.ndarray  # bool [N]
    is_truncated: np.ndarray  # bool [N]

    @property
    def is_last(self) -> np.ndarray:
        """Whether the episode ends with this row, one way or the other."""
        return self.is_terminated | self.is_truncated


class VectorTask(ABC):
    """`num_envs` copies of one task that reset on the step after an episode's end."""

    num_envs: int
    observation_space: gym.spaces.Box  # of one environment, uint8 [H, W, C]
    action_space: gym.spaces.Discrete  # of one environment
    reward_scale: float = 1.0  # for training only; rows carry raw rewards

    @abstractmethod
    def reset(self, seed: int) -> Rows:
        """Starts all environments afresh; every row is a first row.

        Nothing of what happened before remains: the rows that follow depend only on
        the seed (any non-negative integer) and the actions, as in a new object.
        """

    @abstractmethod
    def step(self, actions: np.ndarray) -> Rows:
        """Takes int64 [N]; an environment whose last row ended an episode resets."""

    def close(self) -> None:  # noqa: B027 (not every task holds something)
        """Frees what the environments hold; calling it twice is harmless."""


def first_rows(obs: np.ndarray) -> Rows:
    """Returns the rows of environments that have all just been reset."""
    nothing = np.zeros(len(obs), bool)
    rewards = np.zeros(len(obs), np.float32)
    return Rows(obs, rewards, ~nothing, nothing, nothing.copy())


def image_space(shape: tuple[int, int, int]) -> gym.spaces.Box:
    """Returns the space of uint8 images of the given height, width and channels."""
    return gym.spaces.Box(0, 255, shape, np.uint8)


def native_seeds(seed: int, count: int) -> list[int]:
    """Derives one seed per environment that fits the 31 bits simulators accept."""
    return [derive_seed(seed, index) % 2**31 for index in range(count)]
