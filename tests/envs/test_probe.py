"""An environment that cannot be repeated is found before training."""

import time

import gymnasium as gym
import numpy as np
import pytest

from rllib_arrow.envs.probe import ignores_seed, warn_of_ignored_seeds
from rllib_arrow.errors import UserError


class Noise(gym.Env):
    """Shows random pixels; what they are drawn with is up to `source`."""

    observation_space = gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config):
        self.source = config["source"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.frame(), {}

    def frame(self):
        rng = np.random.default_rng() if self.source == "clock" else self.np_random
        return rng.integers(256, size=(16, 16, 3), dtype=np.uint8)

    def step(self, action):
        frame, reward = self.frame(), 0.0
        if self.source == "reward":
            reward = float(np.random.default_rng().random())
        return frame, reward, bool(self.np_random.random() < 0.2), False, {}


@pytest.mark.parametrize(
    ("source", "ignores"), [("seed", False), ("clock", True), ("reward", True)]
)
def test_an_environment_that_ignores_its_seed_is_found(source, ignores):
    task = {"id": Noise, "kwargs": {"source": source}}
    assert ignores_seed("custom", task, {}) == ignores


def test_the_suites_own_tasks_are_not_played():
    assert not ignores_seed("minatar", "breakout", {"no such option": 1})


def test_each_task_that_cannot_be_repeated_is_named_once(caplog):
    tasks = [
        {"id": Noise, "kwargs": {"source": source}, "name": f"by {source}"}
        for source in ("seed", "clock")
    ]
    warn_of_ignored_seeds("custom", tasks, {})
    (line,) = caplog.messages
    assert "'by clock' ignores the seed" in line and "resumed exactly" in line


class Hangs(Noise):
    """Takes an hour for a step."""

    def step(self, action):
        time.sleep(3600)


def test_a_task_that_hangs_is_named_and_not_waited_for(caplog):
    tasks = [
        {"id": env, "kwargs": {"source": "clock"}, "name": env.__name__}
        for env in (Hangs, Noise)
    ]
    warn_of_ignored_seeds("custom", tasks, {}, limit_s=0.5)
    hung, ignored = caplog.messages
    assert hung.startswith("Task 'Hangs' hung when it was tried: 64 steps took more")
    assert ignored.startswith("Task 'Noise' ignores the seed")


class Raises(Noise):
    """Breaks in its first step."""

    def step(self, action):
        raise self.source


def test_a_task_that_raises_is_named_and_left_to_the_workers(caplog):
    error = ValueError("out of order")
    task = {"id": Raises, "kwargs": {"source": error}, "name": "broken"}
    warn_of_ignored_seeds("custom", [task], {})
    assert caplog.messages == [
        "Task 'broken' failed when it was tried: ValueError: out of order"
    ]
    task["kwargs"] = {"source": UserError("wrong shape")}
    with pytest.raises(UserError, match="wrong shape"):
        warn_of_ignored_seeds("custom", [task], {})
