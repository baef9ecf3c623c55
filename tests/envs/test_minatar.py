"""The MinAtar suite against the package's own environments."""

from itertools import combinations

import numpy as np
import pytest
from minatar import Environment

from rllib_arrow.envs.base import native_seeds
from rllib_arrow.envs.minatar import GAMES, PALETTE, MinAtarTask, mixed_colours
from rllib_arrow.envs.suites import SUITES

PLAIN = {"hold": 1, "minimal_actions": False}  # the games as the package has them
NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


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
    task = MinAtarTask(game, envs, sticky=0.2, max_episode_steps=limit, **PLAIN)
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


def test_the_games_are_those_of_the_suite():
    assert SUITES["minatar"].tasks == GAMES


def test_every_set_of_channels_has_a_colour_of_its_own():
    colours = mixed_colours(PALETTE)
    assert len(np.unique(colours, axis=0)) == 2 ** len(PALETTE)


def test_single_channels_are_far_apart_and_far_from_the_background():
    colours = [np.zeros(3), *np.array(PALETTE, float)]
    distances = [np.linalg.norm(a - b) for a, b in combinations(colours, 2)]
    assert min(distances) > 100


@pytest.mark.parametrize(("options", "steps"), [(PLAIN, 2500), ({}, 625)])
def test_freeway_is_truncated_rather_than_terminated_by_its_clock(options, steps):
    task = MinAtarTask("freeway", 1, **options)
    task.reset(0)
    for _ in range(steps - 1):
        assert not task.step(np.zeros(1, np.int64)).is_last[0]
    last = task.step(np.zeros(1, np.int64))
    assert last.is_truncated[0] and not last.is_terminated[0]


@pytest.mark.parametrize("game", GAMES)
def test_a_held_action_is_as_many_steps_of_the_packages_game(game):
    """Also at ends: a limit that no hold divides, deaths in the middle of a hold."""
    hold, limit, seed, envs = 3, 100, 5, 2
    task = MinAtarTask(game, envs, sticky=0.3, max_episode_steps=limit, hold=hold)
    actions = Environment(game).minimal_action_set() if game == "freeway" else range(6)
    plain = []
    for plain_seed in native_seeds(seed, envs):
        plain.append(Environment(game, sticky_action_prob=0.3))
        plain[-1].seed(plain_seed)
        plain[-1].reset()
    task.reset(seed)
    rng = np.random.default_rng(2)
    ended, age = [False] * envs, [0] * envs
    for _ in range(400):
        chosen = rng.integers(6, size=envs)
        rows = task.step(chosen)
        for i, one in enumerate(plain):
            total, terminated = 0, False
            if ended[i]:
                one.reset()
                age[i] = 0
            else:
                for _ in range(hold):
                    if not terminated and age[i] < limit:
                        reward, terminated = one.act(actions[chosen[i] % len(actions)])
                        total, age[i] = total + reward, age[i] + 1
            truncated = age[i] == limit and not terminated
            assert rows.rewards[i] == total
            assert rows.is_terminated[i] == terminated
            assert rows.is_truncated[i] == truncated
            np.testing.assert_array_equal(rows.obs[i], painted(one.state()))
            ended[i] = terminated or truncated


def actions_played(game: str, **options) -> list[int]:
    """Returns what the package's game is told for each of the six actions."""
    task = MinAtarTask(game, 1, sticky=0.0, **options)
    task.reset(0)
    played = []
    task._games[0].act = lambda action: (played.append(action), (0, False))[1]
    for action in range(6):
        task.step(np.array([action]))
    return played


def test_the_minimal_action_set_is_counted_around():
    assert actions_played("freeway", hold=1) == [NOTHING, UP, DOWN] * 2
    assert actions_played("space_invaders") == list(range(6))
    minimal = {"minimal_actions": {"space_invaders": True}}
    expected = [NOTHING, LEFT, RIGHT, FIRE, NOTHING, LEFT]
    assert actions_played("space_invaders", **minimal) == expected
    assert actions_played("breakout", **minimal) == list(range(6))
    assert actions_played("breakout", minimal_actions=True) == [0, 1, 3] * 2


def test_options_are_for_all_games_or_per_game_with_the_rest_at_its_default():
    def held(game, **options):
        return len(actions_played(game, **options)) / 6

    assert (held("freeway"), held("breakout")) == (4, 1)
    assert (held("freeway", hold=2), held("breakout", hold=2)) == (2, 2)
    assert held("freeway", hold={"breakout": 3}) == 4
    assert held("breakout", hold={"breakout": 3}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hold": 0}, r"hold \(0\) must be an integer >= 1"),
        ({"hold": {"breakot": 2}}, "unknown game in hold 'breakot': did you mean"),
        ({"hold": {"breakout": 1.5}}, r"hold of breakout \(1.5\) must be"),
        ({"minimal_actions": 1}, r"minimal_actions \(1\) must be true or false"),
    ],
)
def test_a_wrong_option_is_named_even_if_it_is_for_another_game(options, message):
    with pytest.raises(ValueError, match=message):
        MinAtarTask("freeway", 1, **options)


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
