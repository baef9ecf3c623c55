"""The MinAtar suite: five small games, drawn as 16x16 RGB images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rllib_arrow.envs.base import (
    Rows,
    VectorTask,
    first_rows,
    image_space,
    native_seeds,
)
from rllib_arrow.envs.options import (
    check_boolean,
    check_integer,
    check_known,
    check_probability,
    require,
)

GAMES = ("breakout", "asterix", "space_invaders", "freeway", "seaquest")
STICKY = 0.1  # how likely an action is that of the step before
MAX_EPISODE_STEPS = 2500
# What a game does unless told otherwise. A random player crosses Freeway's road once in
# 27,000 steps; held for four, with no action that does nothing new, once in 700.
HOLD = {"freeway": 4}  # elsewhere 1: held actions would ruin Breakout
MINIMAL = {"freeway": True}  # elsewhere False

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


def of_game(
    game: str,
    name: str,
    given: Any,
    default: Any,
    check: Callable[[str, Any], Any],
) -> Any:
    """Returns an option's checked value for one game.

    Options are one value for all games, a mapping from games to values that leaves the
    others at their default, or None for the default.
    """
    if isinstance(given, Mapping):
        check_known(f"game in {name}", given, GAMES)
        values = {key: check(f"{name} of {key}", value) for key, value in given.items()}
        return values.get(game, default)
    return default if given is None else check(name, given)


class MinAtarTask(VectorTask):
    """One game: 16x16 RGB, 6 actions, sticky actions, long episodes truncated.

    An action is held for `hold` steps of the game, or until the episode ends; rewards
    add up. With `minimal_actions` the six actions are the game's minimal set, counted
    around. `max_episode_steps` counts steps of the game: its default is just below
    Freeway's own time limit, whose end is then a truncation, which it is, rather than
    a terminal state.
    """

    observation_space = image_space((16, 16, 3))
    action_space = Discrete(6)

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        sticky: float = STICKY,
        max_episode_steps: int = MAX_EPISODE_STEPS,
        hold: int | Mapping[str, int] | None = None,
        minimal_actions: bool | Mapping[str, bool] | None = None,
    ) -> None:
        self._minatar = require("minatar", "MinAtar", "minatar")
        self.num_envs = num_envs
        self._game = game
        self._sticky = check_probability("sticky", sticky)
        self._limit = check_integer("max_episode_steps", max_episode_steps, 1)
        self._hold = of_game(game, "hold", hold, HOLD.get(game, 1), _at_least_one)
        minimal = MINIMAL.get(game, False)
        if of_game(game, "minimal_actions", minimal_actions, minimal, check_boolean):
            actions = self._minatar.Environment(game).minimal_action_set()
        else:
            actions = range(self.action_space.n)
        self._actions = np.resize(np.array(actions), self.action_space.n)
        self._colours = mixed_colours(PALETTE)
        self._rows, self._columns = CELLS[:, None], CELLS

    def reset(self, seed: int) -> Rows:
        self._games = []
        for game_seed in native_seeds(seed, self.num_envs):
            game = self._minatar.Environment(self._game, self._sticky)
            game.seed(game_seed)
            game.reset()
            self._games.append(game)
        self._age = [0] * self.num_envs  # in steps of the game
        rows = first_rows(self._draw())
        self._ended = rows.is_last
        return rows

    def step(self, actions: np.ndarray) -> Rows:
        is_first = self._ended
        rewards = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, bool)
        steps = zip(self._actions[actions].tolist(), is_first.tolist(), strict=True)
        for index, (action, starts) in enumerate(steps):
            if starts:
                self._games[index].reset()
                self._age[index] = 0
            else:
                rewards[index], terminated[index] = self._play(index, action)
        truncated = (np.array(self._age) >= self._limit) & ~terminated
        self._ended = terminated | truncated
        return Rows(self._draw(), rewards, is_first, terminated, truncated)

    def _play(self, index: int, action: int) -> tuple[float, bool]:
        """Holds an action in one game; returns the reward and whether it is over."""
        total = 0.0
        for _ in range(min(self._hold, self._limit - self._age[index])):
            reward, terminated = self._games[index].act(action)
            self._age[index] += 1
            total += reward
            if terminated:
                return total, True
        return total, False

    def _draw(self) -> np.ndarray:
        """Draws all games at once."""
        cells = np.stack([game.state() for game in self._games])
        packed = np.packbits(cells, axis=-1, bitorder="little")
        codes = packed[..., 0].astype(np.intp)
        if packed.shape[-1] > 1:  # more than eight channels
            codes |= packed[..., 1].astype(np.intp) << 8
        return self._colours[codes[:, self._rows, self._columns]]


def _at_least_one(name: str, value: Any) -> int:
    return check_integer(name, value, 1)
