"""RLlib's `.environment()`: alone a curriculum of one, never ignored."""

from __future__ import annotations

import gymnasium as gym
import pytest
from ray import tune

from rllib_arrow import ARROWConfig
from tests.algorithms.corridor import Corridor
from tests.algorithms.tiny import scores, tiny_config, train


class LongCorridor(Corridor):
    """A corridor that takes one mapping, as RLlib's environments do."""

    def __init__(self, config):
        self.name = config.get("name", "none")


def test_an_environment_alone_is_a_curriculum_of_one():
    tune.register_env("corridor_of_tune", LongCorridor)
    for env, name in (
        ("ALE/Pong-v5", "ALE/Pong-v5"),
        ("minatar/breakout", "minatar/breakout"),
        ("corridor_of_tune", "corridor_of_tune"),
        (LongCorridor, "LongCorridor"),
    ):
        config = ARROWConfig().environment(env, env_config={"name": "mine"})
        plan = config.curriculum_object()
        assert plan.task_names == (name,) and plan.setting == "single"
        assert plan.spec(name) == {"id": env, "kwargs": {"name": "mine"}}
        assert plan.total_epochs == 90
        config.continual(curriculum={"epochs_per_task": 3, "cycles": 2})
        assert config.curriculum_object().total_epochs == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.environment("CartPole-v1"),
            r"env \('CartPole-v1'\) must stand alone",
        ),
        (
            lambda c: c.environment(env_config={"a": 1}),
            r"env_config \({'a': 1}\) must be",
        ),
    ],
)
def test_an_environment_beside_a_curriculum_is_refused(change, message):
    config = tiny_config()
    change(config)
    with pytest.raises(ValueError, match=message):
        config.validate()


def test_a_name_nobody_knows_is_refused_in_one_line():
    with pytest.raises(ValueError, match="unknown environment 'Cartpole'"):
        ARROWConfig().environment("Cartpole").validate()


def test_vector_observations_are_refused_when_the_algorithm_is_built(ray_two_cpus):
    config = tiny_config()
    config.environment("CartPole-v1").continual(curriculum={"epochs_per_task": 1})
    with pytest.raises(ValueError, match="'CartPole-v1' must have uint8 images"):
        config.build_algo()


def test_a_class_is_trained_and_evaluated_under_its_name(ray_two_cpus):
    assert issubclass(LongCorridor, gym.Env)
    config = tiny_config()
    config.environment(LongCorridor).continual(curriculum={"epochs_per_task": 1})
    algorithm = config.build_algo()
    train(algorithm, 1)
    assert ",custom,single," in scores(algorithm)
    assert ",LongCorridor," in scores(algorithm)
    algorithm.stop()
