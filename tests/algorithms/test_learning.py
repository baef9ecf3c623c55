"""A small task on pixels, learned from scratch by each whole algorithm."""

import pytest

from rllib_arrow import ARROWConfig, DV3Config
from tests.algorithms import corridor  # noqa: F401  (registers the task)

CURRICULUM = {
    "suite": "custom",
    "tasks": [{"id": "rllib_arrow_tests/Corridor-v0", "name": "corridor"}],
    "epochs_per_task": 8,
}


@pytest.mark.parametrize("method", [ARROWConfig, DV3Config])
def test_a_corridor_is_learned_to_a_mean_return_above_nine_tenths(
    method, ray_two_cpus, tmp_path
):
    config = method().continual(
        curriculum=CURRICULUM, replay_capacity_chunks=64, replay_chunk_length=32
    )
    config.training(
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
    config.env_runners(num_envs_per_env_runner=4, rollout_fragment_length=128)
    config.evaluation(evaluation_interval=8, evaluation_duration=32)
    config.debugging(seed=1)
    algorithm = config.build_algo()
    try:
        for _ in range(8):
            result = algorithm.train()
            print(
                result["env_runners"],
                result["learners"]["default_policy"]["reward_loss"],
                result["learners"]["default_policy"]["image_loss"],
                result["learn_s"],
            )
    finally:
        algorithm.stop()
    print(result["evaluation"])
    assert result["evaluation"]["corridor"]["return_mean"] > 0.9
