"""The env runner on its own, without Ray's workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.env_runner import ContinualEnvRunner
from tests.algorithms.tiny import tiny_config


@pytest.fixture
def runner() -> ContinualEnvRunner:
    return ContinualEnvRunner(config=tiny_config(), worker_index=1)


def same(a, b) -> bool:
    pairs = zip(a, b, strict=True)
    return all(
        np.array_equal(x, y) for p, q in pairs for x, y in zip(p, q, strict=True)
    )


def test_the_same_epoch_gives_the_same_streams_whatever_came_before(runner):
    first, info = runner.sample(epoch=1, task="breakout")
    runner.sample(epoch=2, task="space_invaders")
    again, _ = runner.sample(epoch=1, task="breakout")
    assert same(first, again)
    assert info["frames"] == 4 * 40 and len(first) == 4
    other, _ = runner.sample(epoch=1, part=1, task="breakout")
    assert not same(first, other)


def test_a_new_runner_plays_the_task_it_is_asked_for(runner):
    fresh = ContinualEnvRunner(config=tiny_config(), worker_index=1)
    asked, _ = fresh.sample(epoch=3, task="space_invaders")
    runner.set_task("space_invaders")
    told, _ = runner.sample(epoch=3)
    assert same(asked, told)
    assert fresh.get_state()["task"] == "space_invaders"


def test_streams_start_with_a_first_row_and_hold_every_reward_of_an_episode(runner):
    streams, info = runner.sample(epoch=0, task="breakout")
    assert all(stream.is_first[0] for stream in streams)
    assert all((stream.rewards[stream.is_first] == 0).all() for stream in streams)
    total = sum(info["episode_returns"])
    assert total <= sum(stream.rewards.sum() for stream in streams)


def test_play_at_random_does_not_depend_on_the_policy(runner):
    request = {"epoch": 3, "task": "breakout"}
    streams = [runner.sample(**request, epsilon=e)[0] for e in (1.0, None)]
    with torch.no_grad():
        runner.module.actor[-1].bias[2] += 9.0
    others = [runner.sample(**request, epsilon=e)[0] for e in (1.0, None)]
    assert [same(*pair) for pair in zip(streams, others, strict=True)] == [True, False]


def test_an_unknown_task_is_named_with_those_there_are(runner):
    with pytest.raises(ValueError, match=r"breakot.*breakout"):
        runner.set_task("breakot")


class Broken:
    """An environment that fails while it is stepped."""

    num_envs = 4

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)

    def step(self, actions):
        raise OSError("the emulator is gone")


def test_an_environment_that_raises_is_named_with_its_task(runner, monkeypatch):
    make = runner.make_env
    monkeypatch.setattr(runner, "make_env", lambda: Broken(make()))
    with pytest.raises(
        RuntimeError, match=r"epoch 1, task 'breakout'.*emulator is gone"
    ):
        runner.sample(epoch=1)


def test_failed_environments_are_made_anew_where_that_is_wanted(monkeypatch):
    config = tiny_config()
    config.fault_tolerance(restart_failed_sub_environments=True)
    runner = ContinualEnvRunner(config=config, worker_index=1)
    make, made = runner.make_env, []

    def first_fails():
        made.append(make())
        return Broken(made[-1]) if len(made) == 1 else made[-1]

    monkeypatch.setattr(runner, "make_env", first_fails)
    _, info = runner.sample(epoch=1)
    assert info["frames"] == 160 and len(made) == 2
