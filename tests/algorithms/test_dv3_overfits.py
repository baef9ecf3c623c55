"""The world model learns a handful of real sequences by heart."""

import numpy as np
import pytest
import torch

from rllib_arrow.envs.suites import make_task
from rllib_arrow.models.distributions import two_hot_mean
from tests.algorithms.dv3_tools import make_learner

SIZE = {
    "latent_groups": 16,
    "latent_classes": 16,
    "gru_units": 128,
    "mlp_units": 128,
    "mlp_layers": 1,
    "cnn_depth": 8,
}
SEQUENCES, LENGTH, UPDATES = 4, 10, 300


def rewarded_sequences(suite: str, task: str, actions: list[int]) -> dict:
    """Plays the actions at random; returns sequences with a reward in the middle."""
    rng = np.random.default_rng(0)
    env = make_task(suite, task, 16)
    rows, taken = [env.reset(0)], []
    for _ in range(300):
        taken.append(rng.choice(actions, 16))
        rows.append(env.step(taken[-1]))
    env.close()
    fields = ("obs", "rewards", "is_first", "is_terminated")
    batch = {key: np.stack([getattr(row, key) for row in rows], 1) for key in fields}
    batch["actions"] = np.stack([*taken, taken[-1]], 1)
    middle = batch["rewards"][:, LENGTH // 2 : -LENGTH]
    envs, starts = np.nonzero(middle)
    _, first_of_env = np.unique(envs, return_index=True)
    chosen = first_of_env[:SEQUENCES]
    assert len(chosen) == SEQUENCES, "too few environments gave a reward"
    return {
        key: np.stack([value[envs[i], starts[i] : starts[i] + LENGTH] for i in chosen])
        for key, value in batch.items()
    }


@pytest.mark.parametrize(
    ("suite", "task", "num_actions", "actions"),
    [
        ("atari", "frostbite", 18, list(range(18))),
        # Right, and right with a jump: chance alone hardly ever finds a coin.
        pytest.param("coinrun", "coinrun", 15, [7, 8], marks=pytest.mark.slow),
    ],
)
def test_the_world_model_overfits_real_sequences_tenfold(
    suite, task, num_actions, actions
):
    batch = rewarded_sequences(suite, task, actions)
    learner = make_learner(64, num_actions, model_size=SIZE, world_model_lr=3e-3)
    learner._generator = torch.Generator().manual_seed(0)
    batch = {key: learner._to_device(value) for key, value in batch.items()}
    image_errors, reward_errors = [], []
    for _ in range(UPDATES):
        learned, posterior = learner.update_world_model(batch)
        with torch.no_grad():
            rewards = two_hot_mean(learner.net.reward_head(posterior.states))
        image_errors.append(learned.world_model["image_loss"].item())
        reward_errors.append((rewards - batch["rewards"]).square().mean().item())
    # The mean of the last few: a single one depends on the latents just drawn.
    assert np.mean(image_errors[-5:]) < image_errors[0] / 10
    assert np.mean(reward_errors[-5:]) < reward_errors[0] / 10
