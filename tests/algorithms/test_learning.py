"""A small task on pixels, learned from scratch by each algorithm as a whole."""

from typing import Any

import pytest

from rllib_arrow import ARROWConfig, TESSACConfig
from tests.algorithms import corridor  # noqa: F401  (registers the task)
from tests.algorithms.tiny import train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")

CURRICULUM = {
    "suite": "custom",
    "tasks": [{"id": "rllib_arrow_tests/Corridor-v0", "name": "corridor"}],
}


def learn(config: Any, epochs: int) -> list[dict[str, Any]]:
    """Trains 512 frames an epoch and evaluates 32 episodes at the start and the end."""
    config.continual(
        curriculum=CURRICULUM | {"epochs_per_task": epochs},
        replay_capacity_chunks=64,
        replay_chunk_length=32,
    )
    config.env_runners(num_envs_per_env_runner=4, rollout_fragment_length=128)
    config.evaluation(evaluation_interval=epochs, evaluation_duration=32)
    config.debugging(seed=1)
    algorithm = config.build_algo()
    try:
        return train(algorithm, epochs)
    finally:
        algorithm.stop()


def score(result: dict[str, Any]) -> float:
    return result["evaluation"]["corridor"]["return_mean"]


@pytest.mark.timeout(300)
def test_a_world_model_learns_the_corridor_to_a_score_above_nine_tenths():
    config = ARROWConfig().training(
        model_size="nano",
        interleaved=True,
        world_model_updates=60,
        actor_critic_updates=60,
        batch_size_B=8,
        batch_length_T=16,
        horizon_H=8,
        dream_starts=64,
        world_model_lr=2e-3,
        actor_lr=1e-3,
        critic_lr=1e-3,
    )
    results = learn(config, epochs=6)
    assert abs(score(results[0])) < 0.5  # a random walk
    assert score(results[-1]) > 0.9


def test_sac_learns_the_corridor_while_its_target_entropy_falls():
    config = TESSACConfig().training(
        cnn_depth=8,
        mlp_units=32,
        train_batch_size_per_learner=64,
        updates_per_epoch=40,
        actor_lr=2e-3,
        critic_lr=2e-3,
        # An entropy bonus without end must not be worth more than the reward.
        gamma=0.8,
        alpha_lr=1e-2,
        target_entropy_fraction=0.4,
        tau=0.05,
        tes_start_epoch=2,
        tes_lambda=0.9,
        tes_mean_threshold=0.1,
        tes_std_threshold=0.1,
        tes_discount=0.9,
        tes_period=10,
    )
    results = learn(config, epochs=12)
    assert abs(score(results[0])) < 0.5
    assert score(results[-1]) > 0.9
    metrics = [result["learners"]["default_policy"] for result in results]
    targets = [m["target_entropy"] for m in metrics]
    assert all(t > 0 for t in targets)
    assert targets == sorted(targets, reverse=True) and targets[-1] < 0.7 * targets[0]
    assert all(1e-6 <= m["alpha_value"] <= 0.5 for m in metrics)
