"""The MinAtar suite against the package's own environments."""

from itertools import combinations

import numpy as np
import pytest
from minatar import Environment

from rllib_arrow.envs.base import native_seeds
from rllib_arrow.envs.minatar import PALETTE, MinAtarTask, mixed_colours
from rllib_arrow.envs.suites import SUITES

GAMES = SUITES["minatar"].tasks


def painted(state: np.ndarray) -> np.ndarray:
    """Draws one state cell by cell, each 1.6 pixels a side, rounded."""
    image = np.zeros((16, 16, 3))
    edges = np.ceil(1.6 * np.arange(11)).astype(int)
    for y, x in np.argwhere(state.any(axis=2)):
        colour = np.mean(np.array(PALETTE)[: state.shape[2]][state[y, x]], 0)
        image[edges[y] : edges[y + 1], edges[x] : edges[x + 1]] = colour
    return np.rint(image)


@pytest.mark.parametrize("game", GAMES)
def test_rows_equal_the_packages_games_across_episode_ends(game):
    envs, limit, seed = 3, 150, 11
    task = MinAtarTask(game, envs, sticky=0.2, max_episode_steps=limit)
    rows = task.reset(seed)
    plain = []
    for plain_seed in native_seeds(seed, envs):
        plain.append(Environment(game, sticky_action_prob=0.2))
        plain[-1].seed(plain_seed)
        plain[-1].reset()
    for i, one in enumerate(plain):
        np.testing.assert_array_equal(rows.obs[i], painted(one.state()))
    rng = np.random.default_rng(1)
    ended, age = [False] * envs, [0] * envs
    for _ in range(500):
        actions = rng.integers(6, size=envs)
        rows = task.step(actions)
        for i, one in enumerate(plain):
            reward, terminated = (0, False)
            if ended[i]:
                one.reset()
                age[i] = 0
            else:
                reward, terminated = one.act(actions[i])
                age[i] += 1
            truncated = age[i] == limit and not terminated
            assert rows.is_first[i] == ended[i]
            assert rows.rewards[i] == reward
            assert (rows.is_terminated[i], rows.is_truncated[i]) == (
                terminated,
                truncated,
            )
            np.testing.assert_array_equal(rows.obs[i], painted(one.state()))
            ended[i] = terminated or truncated


def test_every_set_of_channels_has_a_colour_of_its_own():
    colours = mixed_colours(PALETTE)
    assert len(np.unique(colours, axis=0)) == 2 ** len(PALETTE)


def test_single_channels_are_far_apart_and_far_from_the_background():
    colours = [np.zeros(3), *np.array(PALETTE, float)]
    distances = [np.linalg.norm(a - b) for a, b in combinations(colours, 2)]
    assert min(distances) > 100


def test_freeway_is_truncated_rather_than_terminated_by_its_clock():
    task = MinAtarTask("freeway", 1)
    task.reset(0)
    for _ in range(2499):
        assert not task.step(np.zeros(1, np.int64)).is_last[0]
    last = task.step(np.zeros(1, np.int64))
    assert last.is_truncated[0] and not last.is_terminated[0]


def test_without_sticky_actions_the_first_action_is_always_obeyed():
    # A sticky first action would repeat the no-op; the paddle then stands still.
    task = MinAtarTask("breakout", 64, sticky=0.0)
    before = task.reset(0).obs
    after = task.step(np.ones(64, np.int64)).obs
    paddle_row = 15  # the last
    assert (before[:, paddle_row] != after[:, paddle_row]).any(axis=(1, 2)).all()
    task = MinAtarTask("breakout", 64, sticky=1.0)
    before = task.reset(0).obs
    after = task.step(np.ones(64, np.int64)).obs
    assert (before[:, paddle_row] == after[:, paddle_row]).all()
