"""The MiniGrid suite against the package's own environments."""

import importlib
from itertools import combinations

import gymnasium as gym
import numpy as np
import pytest

from rllib_arrow.envs import minigrid as ours
from rllib_arrow.envs.base import native_seeds
from rllib_arrow.envs.minigrid import IDS, MiniGridTask, cell_pictures
from rllib_arrow.envs.suites import SUITES

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)
PICTURES = cell_pictures()
PLAYED = (LEFT, RIGHT, FORWARD, PICK_UP, TOGGLE, FORWARD)


def painted(view: np.ndarray) -> np.ndarray:
    """Draws one view cell by cell, as [x, y, (object, colour, state)]."""
    image = np.zeros((16, 16, 3), np.uint8)
    for x in range(7):
        for y in range(7):
            picture = PICTURES[tuple(view[x, y])]
            image[1 + 2 * y : 3 + 2 * y, 1 + 2 * x : 3 + 2 * x] = picture
    return image


@pytest.mark.parametrize("name", SUITES["minigrid"].tasks)
def test_rows_equal_the_packages_mazes_across_episode_ends(name):
    envs, seed = 2, 4
    task = MiniGridTask(name, envs)
    rows = task.reset(seed)
    plain = [gym.make(IDS[name]).unwrapped for _ in range(envs)]
    for i, one in enumerate(plain):
        view, _ = one.reset(seed=native_seeds(seed, envs)[i])
        np.testing.assert_array_equal(rows.obs[i], painted(view["image"]))
    rng = np.random.default_rng(1)
    ended, ends = [False] * envs, 0
    for _ in range(400):
        actions = rng.integers(6, size=envs)
        rows = task.step(actions)
        for i, one in enumerate(plain):
            reward, terminated, truncated = 0, False, False
            if ended[i]:
                view, _ = one.reset()
            else:
                view, reward, terminated, truncated, _ = one.step(PLAYED[actions[i]])
            assert rows.is_first[i] == ended[i]
            assert rows.rewards[i] == np.float32(reward)
            assert rows.is_terminated[i] == terminated
            assert rows.is_truncated[i] == (truncated and not terminated)
            np.testing.assert_array_equal(rows.obs[i], painted(view["image"]))
            ended[i] = terminated or truncated
            ends += ended[i]
    assert ends > 1


def test_the_names_and_numbers_are_minigrids():
    assert tuple(IDS) == SUITES["minigrid"].tasks
    constants = importlib.import_module("minigrid.core.constants")
    for name in ("EMPTY", "WALL", "DOOR", "KEY", "GOAL", "LAVA"):
        assert getattr(ours, name) == constants.OBJECT_TO_IDX[name.lower()]
    colours = ["red", "green", "blue", "purple", "yellow", "grey"]
    assert list(constants.COLOR_TO_IDX) == colours
    assert list(constants.COLOR_TO_IDX.values()) == list(range(len(ours.COLOURS)))
    assert constants.STATE_TO_IDX == {"open": 0, "closed": 1, "locked": 2}


def test_no_two_things_look_alike():
    plain = [(kind, 0, 0) for kind in (0, ours.EMPTY, ours.WALL, ours.GOAL, ours.LAVA)]
    keys = [(ours.KEY, colour, 0) for colour in range(6)]
    doors = [(ours.DOOR, colour, state) for colour in range(6) for state in range(3)]
    for one, other in combinations(plain + keys + doors, 2):
        difference = PICTURES[one].astype(float) - PICTURES[other]
        assert np.abs(difference).max() > 25, (one, other)
