"""A small task on pixels, learned from scratch through the package's own replay."""

import numpy as np
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from benchmarks.sac import build_ours
from rllib_arrow import AugmentedReplay, Chunk, TESSACConfig
from rllib_arrow.seeding import derive_seed

CELLS, STEP_LIMIT, ENVS, LENGTH = 5, 12, 8, 64


class Corridor:
    """A white block in a corridor; the ceiling's colour tells which end is right.

    The right end gives 1, the wrong one -1, either ends the episode. A walk of
    `STEP_LIMIT` steps is cut. A random walk scores 0, the best policy 1 in two steps.
    """

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.over = np.ones(ENVS, bool)
        self.cell, self.goal, self.age = np.zeros((3, ENVS), np.int64)
        self.returns: list[float] = []

    def step(self, actions: np.ndarray) -> dict[str, np.ndarray]:
        first = self.over
        self.cell = np.where(first, CELLS // 2, self.cell + 2 * actions - 1)
        self.goal = np.where(first, self.rng.integers(2, size=ENVS), self.goal)
        self.age = np.where(first, 0, self.age + 1)
        arrived = (self.cell == 0) | (self.cell == CELLS - 1)
        won = (self.cell == CELLS - 1) == (self.goal == 1)
        rewards = (arrived * np.where(won, 1.0, -1.0)).astype(np.float32)
        self.over = arrived | (self.age == STEP_LIMIT)
        self.returns += rewards[self.over].tolist()
        return {
            "obs": self.draw(),
            "rewards": rewards,
            "is_first": first,
            "is_terminated": arrived,
        }

    def draw(self) -> np.ndarray:
        obs = np.zeros((ENVS, 16, 16, 3), np.uint8)
        for env in range(ENVS):
            obs[env, :4, :, self.goal[env]] = 255
            left = 3 * self.cell[env]
            obs[env, 8:12, left : left + 3] = 255
        return obs


def play(module, generator, env: Corridor, random: bool) -> list[Chunk]:
    rows = []
    actions = np.zeros(ENVS, np.int64)
    for _ in range(LENGTH):
        row = env.step(actions)
        if random:
            actions = env.rng.integers(2, size=ENVS)
        else:
            chosen, _ = module.act(row["obs"], (), row["is_first"], generator)
            actions = chosen.numpy()
        rows.append(row | {"actions": actions})
    streams = {key: np.stack([row[key] for row in rows], axis=1) for key in rows[0]}
    return [
        Chunk(**{key: stream[i] for key, stream in streams.items()})
        for i in range(ENVS)
    ]


def test_a_corridor_seen_in_pixels_is_learned_to_a_mean_return_above_nine_tenths():
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
    learner = build_ours(config, num_actions=2)
    module = learner.module[DEFAULT_MODULE_ID]
    replay = AugmentedReplay(64, LENGTH, 0.0, seed=1)
    metrics, scores = [], []
    for epoch in range(10):
        env = Corridor(np.random.default_rng(epoch))
        generator = torch.Generator().manual_seed(derive_seed(1, "act", epoch))
        for chunk in play(module, generator, env, random=epoch == 0):
            replay.add(chunk)
        scores.append(np.mean(env.returns))
        batches = (replay.sample(64, 2) for _ in range(config.updates_per_epoch))
        metrics.append(learner.learn_epoch(epoch, batches))

    assert abs(scores[0]) < 0.25  # a random walk
    assert np.mean(scores[-3:]) > 0.9
    targets = [m["target_entropy"] for m in metrics]
    assert all(t > 0 for t in targets)
    assert targets == sorted(targets, reverse=True) and targets[-1] < 0.7 * targets[0]
    assert all(1e-6 <= m["alpha_value"] <= 0.5 for m in metrics)
