"""The MiniGrid suite: four small mazes seen from inside, drawn as 16x16 RGB images."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.options import require

# The chain of "Dream Rehearsal", in its order.
IDS = {
    "door_key": "MiniGrid-DoorKey-5x5-v0",
    "simple_crossing": "MiniGrid-SimpleCrossingS9N1-v0",
    "lava_gap": "MiniGrid-LavaGapS5-v0",
    "multi_room": "MiniGrid-MultiRoom-N2-S4-v0",
}

# Turn left, turn right, forward, pick up, toggle, and forward again: no maze here needs
# MiniGrid's `drop` or `done`, and with six actions the spaces are MinAtar's.
ACTIONS = np.array((0, 1, 2, 3, 5, 2))

# In the order of MiniGrid's numbers.
COLOURS = np.array(
    (
        (255, 0, 0),  # red
        (0, 255, 0),  # green
        (0, 0, 255),  # blue
        (160, 40, 255),  # purple
        (255, 255, 0),  # yellow
        (100, 100, 100),  # grey
    )
)
# MiniGrid's numbers of what the mazes hold; 0 is a cell that is not seen.
EMPTY, WALL, DOOR, KEY, GOAL, LAVA = 1, 2, 4, 5, 8, 9
GROUND = (40, 40, 40)
DOOR_STATES = (GROUND, (128, 0, 64), (255, 255, 255))  # open, closed, locked


def cell_pictures() -> np.ndarray:
    """Returns uint8 [10, 6, 3, 2, 2, 3]: 2x2 pixels per object, colour and state.

    What is not seen is black. A door shows its colour on one diagonal and its state on
    the other; a key fills the upper half.
    """
    pictures = np.zeros((10, 6, 3, 2, 2, 3), np.uint8)
    pictures[EMPTY] = pictures[KEY] = GROUND
    pictures[WALL] = (130, 130, 130)
    pictures[GOAL] = (0, 200, 90)
    pictures[LAVA] = (255, 120, 0)
    for index, colour in enumerate(COLOURS):
        pictures[KEY, index, :, 0] = colour
        for state, shade in enumerate(DOOR_STATES):
            pictures[DOOR, index, state] = ((colour, shade), (shade, colour))
    return pictures


class MiniGridTask(VectorTask):
    """One maze: the agent's own 7x7 view as 16x16 RGB, 6 actions, reward at the goal.

    Each cell of the view is 2x2 pixels, with a black frame around all of it. A maze is
    laid out anew for every episode; the reward is 1 less 0.9 times the part of the time
    limit that was used, and reaching the limit truncates.
    """

    observation_space = image_space((16, 16, 3))
    action_space = Discrete(6)

    def __init__(self, task: str, num_envs: int) -> None:
        require("minigrid", "minigrid", "minigrid")
        self.num_envs = num_envs
        # Without Gymnasium's wrappers: MiniGrid has its own time limit.
        self._envs = [gym.make(IDS[task]).unwrapped for _ in range(num_envs)]
        self._pictures = cell_pictures()

    def reset(self, seed: int) -> Rows:
        seeds = native_seeds(seed, self.num_envs)
        views = [
            env.reset(seed=env_seed)[0]["image"]
            for env, env_seed in zip(self._envs, seeds, strict=True)
        ]
        rows = first_rows(self._draw(views))
        self._ended = rows.is_last
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        rewards = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        views = []
        steps = zip(self._envs, ACTIONS[actions].tolist(), strict=True)
        for i, (env, action) in enumerate(steps):
            if is_first[i]:
                seen = env.reset()[0]
            else:
                seen, rewards[i], terminated[i], truncated[i], _ = env.step(action)
            views.append(seen["image"])
        truncated &= ~terminated
        self._ended = terminated | truncated
        return Rows(self._draw(views), rewards, is_first, terminated, truncated)

    def _draw(self, views: list[np.ndarray]) -> np.ndarray:
        """Draws all views at once; MiniGrid's are [x, y, (object, colour, state)]."""
        cells = np.stack(views).swapaxes(1, 2)
        pictures = self._pictures[cells[..., 0], cells[..., 1], cells[..., 2]]
        frames = np.zeros((len(views), 16, 16, 3), np.uint8)
        frames[:, 1:15, 1:15] = pictures.swapaxes(2, 3).reshape(-1, 14, 14, 3)
        return frames
