"""The suites as ordinary Gymnasium environments, for any RLlib algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from rllib_arrow.envs.options import check_known
from rllib_arrow.envs.suites import make_task
from rllib_arrow.errors import UserError


class Continual(gym.Env):
    """One environment of one task.

    `config` is `{suite, task, options}`: the options are those of `make_task` and may
    be left out. Rewards are raw game scores. The last observation of an episode comes
    with `terminated` or `truncated`, and `reset()` then starts the next episode.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        check_known("env_config key", config, ["suite", "task", "options"])
        for key in ("suite", "task"):
            if key not in config:
                raise UserError(f"env_config needs {key!r}; it has {list(config)}.")
        self._task = make_task(
            config["suite"], config["task"], 1, **config.get("options", {})
        )
        self.observation_space = self._task.observation_space
        self.action_space = self._task.action_space
        self._is_over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if self._is_over and seed is None:
            rows = self._task.step(np.zeros(1, np.int64))  # the action is ignored
        else:
            # Also when an episode is given up halfway: the next one is then another.
            rows = self._task.reset(int(self.np_random.integers(2**31)))
        self._is_over = False
        return rows.obs[0], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise UserError(f"action ({action!r}) is not in {self.action_space}.")
        if self._is_over:
            raise RuntimeError("the episode is over; call reset() before step().")
        rows = self._task.step(np.array([action], np.int64))
        self._is_over = bool(rows.is_last[0])
        return (
            rows.obs[0],
            float(rows.rewards[0]),
            bool(rows.is_terminated[0]),
            bool(rows.is_truncated[0]),
            {},
        )

    def close(self) -> None:
        self._task.close()
