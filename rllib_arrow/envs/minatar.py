"""The MinAtar suite: five small games, drawn as 16x16 RGB images."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Discrete

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.options import check_integer, check_probability, require

# The games' 10x10 grid is stretched over the image: a cell is one or two pixels a side.
CELLS = np.arange(16) * 10 // 16

# One colour per channel, channel 0 first. Every set of channels that could share a
# cell has an average colour of its own, so overlapping objects hide nothing.
PALETTE = (
    (236, 255, 255),  # white
    (237, 0, 13),  # red
    (0, 227, 38),  # green
    (2, 51, 255),  # blue
    (255, 255, 0),  # yellow
    (241, 36, 255),  # magenta
    (12, 238, 247),  # cyan
    (205, 123, 12),  # orange
    (131, 0, 255),  # violet
    (0, 108, 47),  # dark green
)


def mixed_colours(palette: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """Returns uint8 [2^C, 3]: the average colour of the channels set in the index."""
    channels = np.arange(len(palette))
    is_set = (np.arange(2 ** len(palette))[:, None] >> channels) & 1
    count = np.maximum(is_set.sum(axis=1, keepdims=True), 1)
    return np.rint(is_set @ np.array(palette) / count).astype(np.uint8)


class MinAtarTask(VectorTask):
    """One game: 16x16 RGB, 6 actions, sticky actions, long episodes truncated.

    The default `max_episode_steps` is just below Freeway's own time limit: its end
    is then a truncation, which it is, rather than a terminal state.
    """

    observation_space = image_space((16, 16, 3))
    action_space = Discrete(6)

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        sticky: float = 0.1,
        max_episode_steps: int = 2500,
    ) -> None:
        self._minatar = require("minatar", "MinAtar", "minatar")
        self.num_envs = num_envs
        self._game = game
        self._sticky = check_probability("sticky", sticky)
        self._limit = check_integer("max_episode_steps", max_episode_steps, 1)
        self._colours = mixed_colours(PALETTE)

    def reset(self, seed: int) -> Rows:
        self._games = []
        for game_seed in native_seeds(seed, self.num_envs):
            game = self._minatar.Environment(self._game, self._sticky)
            game.seed(game_seed)
            game.reset()
            self._games.append(game)
        self._age = np.zeros(self.num_envs, np.int64)
        rows = first_rows(self._draw())
        self._ended = rows.is_last
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        rewards = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        steps = zip(self._games, actions.tolist(), is_first.tolist(), strict=True)
        for index, (game, action, starts) in enumerate(steps):
            if starts:
                game.reset()
            else:
                rewards[index], terminated[index] = game.act(action)
        self._age += 1
        self._age[is_first] = 0
        truncated = (self._age >= self._limit) & ~terminated
        self._ended = terminated | truncated
        return Rows(self._draw(), rewards, is_first, terminated, truncated)

    def _draw(self) -> np.ndarray:
        """Draws all games at once."""
        cells = np.stack([game.state() for game in self._games])
        packed = np.packbits(cells, axis=-1, bitorder="little")
        codes = packed[..., 0].astype(np.intp)
        if packed.shape[-1] > 1:  # more than eight channels
            codes |= packed[..., 1].astype(np.intp) << 8
        return self._colours[codes[:, CELLS[:, None], CELLS]]
