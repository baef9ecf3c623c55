"""Evaluations end, also those of environments whose episodes never do."""

from __future__ import annotations

import numpy as np
import pytest

from rllib_arrow.errors import UserError
from tests.algorithms.corridor import Corridor
from tests.algorithms.tiny import tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")


class Treadmill(Corridor):
    """A corridor without ends, in which every step is worth 1, and dust flies about."""

    def __init__(self, config):
        pass

    def step(self, action):
        obs, *_ = super().step(action)
        self.cell = 2
        obs[0, 0] = np.random.default_rng().integers(256, size=3)
        return obs, 1.0, False, False, {}


def config():
    tiny = tiny_config("TES-SAC", suite="custom", tasks=[{"id": Treadmill}])
    return tiny.evaluation(evaluation_duration=4)


def test_an_episode_that_never_ends_is_cut_and_the_run_says_so(caplog):
    algorithm = config().continual(max_steps_per_evaluated_episode=30).build_algo()
    [result] = train(algorithm, 1)
    assert (
        "4 of 4 evaluated episodes of Treadmill did not end within 30 steps "
        "(max_steps_per_evaluated_episode) and were cut; their return so far counts"
    ) in result["recovered"]
    assert result["evaluation"]["Treadmill"]["return_mean"] == 30
    assert "'Treadmill' ignores the seed" in caplog.text
    algorithm.stop()


@pytest.mark.parametrize("runners", [0, 1])
def test_an_evaluation_that_takes_too_long_stops_the_run_in_one_line(runners):
    slow = config().evaluation(
        evaluation_num_env_runners=runners, evaluation_sample_timeout_s=0.3
    )
    slow.evaluation_config = {"num_cpus_per_env_runner": 0}
    algorithm = slow.build_algo()
    with pytest.raises(UserError) as caught:
        train(algorithm, 1)
    line = str(getattr(caught.value, "cause", caught.value))
    assert line.startswith("task 'Treadmill': 4 episodes were not over within 0.3 s")
    algorithm.stop()


def test_the_first_result_has_scores_also_where_evaluation_is_slower_than_training():
    tiny = tiny_config("DV3").evaluation(
        evaluation_num_env_runners=1,
        evaluation_parallel_to_training=True,
        evaluation_interval=2,
        evaluation_duration=400,
    )
    tiny.evaluation_config = {"num_cpus_per_env_runner": 0}
    algorithm = tiny.training(
        world_model_updates=1, actor_critic_updates=1
    ).build_algo()
    [first] = train(algorithm, 1)
    assert first["evaluation"]["epoch"] == 0  # what Tune goes by must not be missing
    algorithm.stop()
