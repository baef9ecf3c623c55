"""A user's own tasks: any Gymnasium environment that shows images."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.own_task import OwnTask
from rllib_arrow.errors import UserError, one_line


class GymnasiumTask(VectorTask):
    """Copies of one Gymnasium environment, stepped one after the other.

    What the environments return is checked, because a frame of the wrong shape or a
    reward that is not a number would otherwise surface only as a failed update, and an
    end that is neither true nor false as an evaluation that never ends.
    """

    def __init__(self, task: OwnTask, num_envs: int) -> None:
        self.num_envs = num_envs
        self.reward_scale = task.reward_scale
        self._task = task
        self._envs = [self._make() for _ in range(num_envs)]
        self._is_fresh = True
        space, actions = self._envs[0].observation_space, self._envs[0].action_space
        if not _is_image(space) or not _counts_from_zero(actions):
            self.close()
            given = one_line(f"{space} and {actions}")
            raise UserError(
                f"task {task.name!r} must have uint8 images [H, W, 1 or 3] and "
                f"actions counted from 0 (the agents learn from pictures), not {given}."
            )
        self.observation_space = image_space(space.shape)
        self.action_space = gym.spaces.Discrete(int(actions.n))

    def _make(self) -> gym.Env:
        try:
            return self._task.make()
        except Exception as error:
            raise UserError(
                f"task {self._task.name!r}: making {self._task.id!r} failed with "
                f"{type(error).__name__}: {one_line(error)}"
            ) from error

    def reset(self, seed: int) -> Rows:
        # A user's environment may carry things from episode to episode; a new one
        # cannot, so an interrupted run continues as if it had not been.
        if not self._is_fresh:
            self.close()
            self._envs = [self._make() for _ in range(self.num_envs)]
        self._is_fresh = False
        seeds = native_seeds(seed, self.num_envs)
        obs = np.empty((self.num_envs, *self.observation_space.shape), np.uint8)
        for index, (env, env_seed) in enumerate(zip(self._envs, seeds, strict=True)):
            obs[index] = self._checked(env.reset(seed=env_seed)[0])
        rows = first_rows(obs)
        self._ended = rows.is_last
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        obs = np.empty((self.num_envs, *self.observation_space.shape), np.uint8)
        rewards = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        for i, (env, action) in enumerate(
            zip(self._envs, actions.tolist(), strict=True)
        ):
            if is_first[i]:
                obs[i] = self._checked(env.reset()[0])
                continue
            frame, reward, ends, stops, _ = env.step(action)
            obs[i] = self._checked(frame)
            rewards[i] = self._checked_reward(reward)
            terminated[i] = self._checked_flag("terminated", ends)
            truncated[i] = self._checked_flag("truncated", stops)
        truncated &= ~terminated
        self._ended = terminated | truncated
        return Rows(obs, rewards, is_first, terminated, truncated)

    def close(self) -> None:
        for env in self._envs:
            env.close()
        self._envs = []

    def _checked(self, frame: Any) -> np.ndarray:
        shape = self.observation_space.shape
        given = (getattr(frame, "dtype", type(frame).__name__), np.shape(frame))
        if given != (np.uint8, shape):
            raise UserError(
                f"task {self._task.name!r} returned an observation of type {given[0]} "
                f"and shape {given[1]}; its space says uint8 and {shape}."
            )
        return frame

    def _checked_reward(self, reward: Any) -> np.float32:
        # In float32, in which 1e39 is infinite, before and after scaling.
        try:
            with np.errstate(over="ignore"):
                stored = np.float32(reward)
                scaled = stored * np.float32(self.reward_scale)
        except (TypeError, ValueError):
            stored = scaled = np.float32("nan")
        if np.shape(stored) or not (np.isfinite(stored) and np.isfinite(scaled)):
            raise UserError(
                f"task {self._task.name!r} returned the reward {reward!r}; rewards "
                "must be finite numbers in float32, also times the reward_scale "
                f"({self.reward_scale:g})."
            )
        return stored

    def _checked_flag(self, name: str, flag: Any) -> bool:
        if not isinstance(flag, (bool, np.bool_)):
            raise UserError(
                f"task {self._task.name!r} returned {name}={flag!r}; it must be true "
                "or false."
            )
        return bool(flag)


def _is_image(space: gym.Space) -> bool:
    is_box = isinstance(space, gym.spaces.Box) and space.dtype == np.uint8
    return is_box and len(space.shape) == 3 and space.shape[-1] in (1, 3)


def _counts_from_zero(space: gym.Space) -> bool:
    return isinstance(space, gym.spaces.Discrete) and space.start == 0
