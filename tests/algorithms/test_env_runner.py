"""The env runner on its own, without Ray's workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms import env_runner
from rllib_arrow.algorithms.env_runner import ContinualEnvRunner
from rllib_arrow.envs.base import Rows
from rllib_arrow.evaluation.protocol import EpisodeScores
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


def test_every_epoch_and_part_begins_elsewhere(runner, monkeypatch):
    make, seeds = runner.make_env, []

    def noting():
        env = make()
        reset = env.reset
        env.reset = lambda seed: seeds.append(seed) or reset(seed)
        return env

    monkeypatch.setattr(runner, "make_env", noting)
    for _ in range(2):
        for epoch in (1, 2, 3):
            for part in (0, 1):
                runner.sample(epoch=epoch, part=part)
    assert len(set(seeds)) == 6 and seeds[:6] == seeds[6:]
    moves = [runner.sample(epoch=epoch, epsilon=1.0)[0] for epoch in (1, 2)]
    actions = [np.stack([stream.actions for stream in streams]) for streams in moves]
    assert (actions[0] != actions[1]).mean() > 0.5


def test_every_evaluation_plays_other_episodes_whoever_plays_them(monkeypatch):
    seeds = []

    def noting(env, act, episodes, seed, *limits):
        seeds.append(seed)
        return EpisodeScores((0.0,))

    monkeypatch.setattr(env_runner, "play_episodes", noting)
    for index in (1, 2):
        runner = ContinualEnvRunner(config=tiny_config(), worker_index=index)
        for epoch in (1, 2):
            for task in ("breakout", "space_invaders"):
                runner.evaluate(task=task, epoch=epoch, episodes=4)
    assert len(set(seeds)) == 4 and seeds[:4] == seeds[4:]


def test_an_evaluated_policy_knows_where_episodes_begin(runner, monkeypatch):
    rows = Rows(*[None] * 5)._replace(
        obs=np.zeros((4, 16, 16, 3), np.uint8), is_first=np.array([1, 0, 1, 0], bool)
    )
    seen = []

    class Policy:
        def __init__(self, *args):
            pass

        def __call__(self, obs, is_first):
            seen.append((obs is rows.obs, is_first is rows.is_first))

    def plays(env, act, *rest):
        act(rows)
        return EpisodeScores((0.0,))

    monkeypatch.setattr(env_runner, "ActingPolicy", Policy)
    monkeypatch.setattr(env_runner, "play_episodes", plays)
    runner.evaluate(task="breakout", epoch=1, episodes=4)
    assert seen == [(True, True)]


def test_rewards_are_scaled_for_training_and_raw_in_scores():
    fivefold = {"id": "minatar/breakout", "name": "fivefold", "reward_scale": 5.0}
    config = tiny_config(tasks=["breakout", fivefold])
    config.env_runners(rollout_fragment_length=200)
    runner = ContinualEnvRunner(config=config, worker_index=1)
    plain, told = runner.sample(epoch=0, task="breakout")
    scaled, also_told = runner.sample(epoch=0, task="fivefold")
    for one, other in zip(plain, scaled, strict=True):
        assert np.array_equal(one.obs, other.obs)
        assert np.array_equal(5 * one.rewards, other.rewards)
    assert sum(stream.rewards.sum() for stream in plain) > 0
    assert told["episode_returns"] == also_told["episode_returns"]


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


@pytest.mark.parametrize("again", [False, True])
def test_an_environment_that_raises_in_an_evaluation_is_named_or_made_anew(
    monkeypatch, again
):
    config = tiny_config().fault_tolerance(restart_failed_sub_environments=again)
    runner = ContinualEnvRunner(config=config, worker_index=1)
    expected = runner.evaluate(task="breakout", epoch=1, episodes=4)
    make, made = runner._make_task, []

    def first_fails(*args):
        made.append(make(*args))
        return Broken(made[-1]) if len(made) == 1 else made[-1]

    monkeypatch.setattr(runner, "_make_task", first_fails)
    request = {"task": "breakout", "epoch": 1, "episodes": 4}
    if again:
        assert len(runner.evaluate(**request).returns) == 4
    else:
        where = r"the evaluation of epoch 1, task 'breakout': OSError: the emulator"
        with pytest.raises(RuntimeError, match=where):
            runner.evaluate(**request)
    assert runner.evaluate(**request) == expected
