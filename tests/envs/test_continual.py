"""The suites as ordinary Gymnasium environments."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rllib_arrow.envs.continual import Continual
from rllib_arrow.envs.minatar import MinAtarTask


def continual(task="breakout", **options):
    return Continual({"suite": "minatar", "task": task, "options": options})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasiums_own_checker_is_content():
    check_env(continual(), skip_render_check=True)


def test_every_suite_can_be_used():
    for suite, task in [("atari", "boxing"), ("coinrun", "nb"), ("minatar", "freeway")]:
        env = Continual({"suite": suite, "task": task})
        obs, _ = env.reset(seed=1)
        assert env.observation_space.contains(obs)
        assert env.observation_space.contains(env.step(0)[0])
        env.close()


def test_the_terminal_observation_comes_with_the_end_and_reset_goes_on():
    env, task = continual(), MinAtarTask("breakout", 1)
    obs, _ = env.reset(seed=4)
    # The same episode, seen as rows: the environment draws its seed from Gymnasium's.
    rows = task.reset(int(np.random.default_rng(4).integers(2**31)))
    ends = 0
    for _ in range(200):
        np.testing.assert_array_equal(obs, rows.obs[0])
        obs, reward, terminated, truncated, _ = env.step(1)
        rows = task.step(np.array([1]))
        assert (reward, terminated, truncated) == (
            rows.rewards[0],
            rows.is_terminated[0],
            rows.is_truncated[0],
        )
        if terminated or truncated:
            np.testing.assert_array_equal(obs, rows.obs[0])
            obs, _ = env.reset()
            rows = task.step(np.array([1]))
            assert rows.is_first[0]
            ends += 1
    assert ends > 3


def test_reset_halfway_starts_another_episode():
    env = continual("freeway")
    starts = set()
    for episode in range(4):
        obs, _ = env.reset(seed=0 if episode == 0 else None)
        starts.add(obs.tobytes() + b"".join(env.step(2)[0].tobytes() for _ in range(5)))
    assert len(starts) == 4


def test_a_seed_counts_also_right_after_an_end():
    env = continual("freeway", max_episode_steps=1)
    first, _ = env.reset(seed=5)
    env.step(0)
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(again, first)


def test_stepping_after_the_end_is_refused():
    env = continual(max_episode_steps=1)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)


def test_an_action_outside_the_space_is_refused():
    env = continual()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action \(6\) is not in Discrete\(6\)"):
        env.step(6)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"suite": "minatar"}, "needs 'task'"),
        ({"suite": "minatar", "tasks": "breakout"}, "did you mean 'task'?"),
        ({"suite": "minatar", "task": "breakout", "options": {"stick": 1}}, "'sticky'"),
    ],
)
def test_a_wrong_config_is_one_clear_line(config, message):
    with pytest.raises(ValueError, match=message):
        Continual(config)
