"""A task on pixels that a small agent learns in a minute."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

CELLS, STEP_LIMIT = 5, 12


class Corridor(gym.Env):
    """A white block in a corridor; the ceiling's colour tells which end is right.

    The right end gives 1, the wrong one -1, either ends the episode. A walk of
    `STEP_LIMIT` steps is cut. A random walk scores 0, the best policy 1 in two steps.
    """

    observation_space = gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.age = CELLS // 2, 0
        self.goal = int(self.np_random.integers(2))
        return self._draw(), {}

    def step(self, action):
        self.cell += 2 * int(action) - 1
        self.age += 1
        arrived = self.cell in (0, CELLS - 1)
        won = (self.cell == CELLS - 1) == (self.goal == 1)
        reward = float(arrived) * (1.0 if won else -1.0)
        cut = self.age == STEP_LIMIT and not arrived
        return self._draw(), reward, arrived, cut, {}

    def _draw(self) -> np.ndarray:
        obs = np.zeros((16, 16, 3), np.uint8)
        obs[:4, :, self.goal] = 255
        obs[8:12, 3 * self.cell : 3 * self.cell + 3] = 255
        return obs


gym.register("rllib_arrow_tests/Corridor-v0", Corridor)
