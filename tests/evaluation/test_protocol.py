"""Episodes are complete, and short ones are not favoured."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.evaluation.protocol import episodes_per_env, play_episodes


class MixedLengths(VectorTask):
    """Episodes of 2 steps worth 1 or of 50 steps worth 10, with equal probability."""

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Box(0, 255, (1, 1, 1), np.uint8)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, seed: int) -> Rows:
        self.rng = np.random.default_rng(seed)
        self.left = self._lengths(self.num_envs)
        self.long = self.left == 50
        self.over = np.zeros(self.num_envs, bool)
        return self._rows(np.zeros(self.num_envs), np.ones(self.num_envs, bool))

    def step(self, actions: np.ndarray) -> Rows:
        first = self.over.copy()
        self.left = np.where(first, self._lengths(self.num_envs), self.left - 1)
        self.long = np.where(first, self.left == 50, self.long)
        self.over = self.left == 0
        rewards = np.where(self.over, np.where(self.long, 10.0, 1.0), 0.0)
        return self._rows(rewards, first)

    def _lengths(self, count: int) -> np.ndarray:
        return np.where(self.rng.random(count) < 0.5, 2, 50)

    def _rows(self, rewards: np.ndarray, first: np.ndarray) -> Rows:
        obs = np.zeros((self.num_envs, 1, 1, 1), np.uint8)
        no = np.zeros(self.num_envs, bool)
        over = self.over if hasattr(self, "over") else no
        return Rows(obs, rewards.astype(np.float32), first, over & ~first, no)


def no_action(rows: Rows) -> np.ndarray:
    return np.zeros(len(rows.is_first), np.int64)


def test_episodes_are_shared_out_as_evenly_as_can_be():
    assert episodes_per_env(10, 4).tolist() == [3, 3, 2, 2]


def test_every_environment_plays_its_share_and_no_more():
    scores = play_episodes(MixedLengths(4), no_action, episodes=10, seed=0)
    assert len(scores.returns) == 10


def test_long_episodes_are_counted_as_often_as_they_happen():
    scores = play_episodes(MixedLengths(64), no_action, episodes=64, seed=1)
    # Half of the episodes are worth 10 and half 1: the mean of 64 spreads by 0.56.
    assert scores.mean == pytest.approx(5.5, abs=4 * 0.56)


def test_taking_the_first_episodes_to_finish_would_fail_the_same_check():
    env, returns = MixedLengths(64), []
    rows, running = env.reset(1), np.zeros(64)
    while len(returns) < 64:
        rows = env.step(no_action(rows))
        running += rows.rewards
        for i in np.flatnonzero(rows.is_last):
            returns.append(running[i])
            running[i] = 0.0
    assert abs(np.mean(returns[:64]) - 5.5) > 4 * 0.56


def test_mean_and_std_are_those_of_the_episodes():
    scores = play_episodes(MixedLengths(3), no_action, episodes=7, seed=2)
    assert scores.mean == np.mean(scores.returns)
    assert scores.std == np.std(scores.returns)


def test_a_limit_that_no_episode_meets_changes_nothing():
    free = play_episodes(MixedLengths(4), no_action, episodes=10, seed=0)
    assert play_episodes(MixedLengths(4), no_action, 10, 0, max_steps=50) == free
    assert free.cut == 0


def test_episodes_longer_than_the_limit_are_cut_and_counted():
    scores = play_episodes(MixedLengths(64), no_action, 64, seed=1, max_steps=49)
    # Every long episode is cut before its only reward; the short ones are whole.
    assert scores.cut == scores.returns.count(0.0) > 16
    assert scores.returns.count(1.0) == 64 - scores.cut


class Long(MixedLengths):
    """Episodes of 12 steps, each worth 1."""

    def step(self, actions: np.ndarray) -> Rows:
        rows = super().step(actions)
        return rows._replace(rewards=(~rows.is_first).astype(np.float32))

    def _lengths(self, count: int) -> np.ndarray:
        return np.full(count, 12)


def test_what_a_cut_episode_goes_on_with_is_no_episode():
    scores = play_episodes(Long(2), no_action, 8, seed=0, max_steps=10)
    assert scores.returns == (10.0,) * 8 and scores.cut == 8
    assert play_episodes(Long(2), no_action, 8, 0, max_steps=12).returns == (12.0,) * 8


class Endless(MixedLengths):
    def _lengths(self, count: int) -> np.ndarray:
        return np.full(count, 10**9)


def test_episodes_that_never_end_do_not_hang_an_evaluation():
    assert play_episodes(Endless(2), no_action, 6, seed=0, max_steps=5).cut == 6
    with pytest.raises(TimeoutError):
        play_episodes(Endless(2), no_action, 6, seed=0, timeout_s=0.05)
