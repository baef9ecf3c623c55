"""An environment that hangs is replaced, and the scores do not show it."""

from __future__ import annotations

import time
from pathlib import Path

import gymnasium as gym
import pytest

from rllib_arrow.envs.probe import STEPS
from tests.algorithms.corridor import Corridor
from tests.algorithms.tiny import scores, tiny_config, train

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("ray_two_cpus")]

EPOCHS = 2


class HangsOnce(Corridor):
    """Hangs in a step of training, unless a file says that this has happened."""

    def __init__(self, happened: str):
        self.happened, self.steps = Path(happened), 0

    def step(self, action):
        self.steps += 1
        if self.steps > 2 * STEPS and not self.happened.exists():
            self.happened.touch()
            time.sleep(3600)
        return super().step(action)


gym.register("HangsOnce-v0", HangsOnce)


def play(happened: Path) -> str:
    task = {
        "id": "tests.chaos.test_bad_environments:HangsOnce-v0",
        "kwargs": {"happened": str(happened)},
        "name": "corridor",
    }
    config = tiny_config(suite="custom", tasks=[task])
    config.env_runners(
        num_env_runners=2,
        num_cpus_per_env_runner=0,
        sample_timeout_s=10.0,
        rollout_fragment_length=4 * STEPS,  # the task is tried for two before
    )
    algorithm = config.build_algo()
    train(algorithm, EPOCHS)
    table = scores(algorithm)
    algorithm.stop()
    return table


def test_an_environment_that_hangs_is_replaced(tmp_path):
    smooth, hung = tmp_path / "smooth", tmp_path / "hung"
    smooth.touch()
    undisturbed = play(smooth)
    assert play(hung) == undisturbed
    assert hung.exists()
