"""Trains sheeprl's DreamerV3 on one MinAtar game, as `base/micro.yaml` trains ours.

The same pixels, frames, updates, memory, sizes of networks, batch and learning rates;
all else (its GRU with a layer norm, its learned initial state, a dream from each of the
128 states instead of 64 dreams) is sheeprl's own, and so is the training loop.

Runs in an environment that has sheeprl and this project; started by
`benchmarks.learning`:

    python -m benchmarks.learning_sheeprl GAME SEED EPOCHS OUT_CSV
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from sheeprl.cli import run

from rllib_arrow.envs.continual import Continual
from rllib_arrow.files import write_aside

ENVS, FRAMES_PER_EPOCH, UPDATES_PER_EPOCH, MEMORY = 16, 4096, 200, 16_384
OVERRIDES = [
    "exp=dreamer_v3",
    "env=dummy",
    "env.wrapper._target_=benchmarks.learning_sheeprl.Recorded",
    f"env.num_envs={ENVS}",
    "env.sync_env=True",
    "env.screen_size=16",
    "env.capture_video=False",
    "algo.cnn_keys.encoder=[rgb]",
    "algo.mlp_keys.encoder=[]",
    "algo.per_rank_batch_size=8",
    "algo.per_rank_sequence_length=16",
    "algo.horizon=12",
    # The first epoch is random play, then its updates, then both in turns.
    f"algo.learning_starts={FRAMES_PER_EPOCH}",
    f"algo.per_rank_pretrain_steps={UPDATES_PER_EPOCH}",
    f"algo.replay_ratio={UPDATES_PER_EPOCH / FRAMES_PER_EPOCH}",
    "algo.run_test=False",
    "algo.dense_units=128",
    "algo.mlp_layers=2",
    "algo.world_model.discrete_size=16",
    "algo.world_model.stochastic_size=16",
    "algo.world_model.encoder.cnn_channels_multiplier=16",
    "algo.world_model.recurrent_model.recurrent_state_size=128",
    "algo.world_model.transition_model.hidden_size=128",
    "algo.world_model.representation_model.hidden_size=128",
    "algo.world_model.optimizer.lr=2e-3",
    "algo.actor.optimizer.lr=2e-4",
    "algo.critic.optimizer.lr=5e-4",
    "algo.actor.ent_coef=1e-3",
    f"buffer.size={MEMORY}",
    "buffer.memmap=False",
    "buffer.checkpoint=False",
    "checkpoint.every=1000000000",
    "checkpoint.save_last=False",
    "metric.log_level=0",
    "metric.disable_timer=True",
    "fabric.accelerator=cpu",
    "num_threads=1",
]


class Recorded(gym.Wrapper):
    """One environment of the suite that notes the return of each finished episode."""

    steps: list[int]  # of all environments, and of their finished episodes
    returns: list[float]

    def __init__(self, id: str, **_: Any) -> None:
        super().__init__(Continual({"suite": "minatar", "task": id}))
        self._age, self._score = 0, 0.0

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        self._score = 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(int(action))
        self._age += 1
        self._score += reward
        if terminated or truncated:
            Recorded.steps.append(self._age * ENVS)
            Recorded.returns.append(self._score)
        return obs, reward, terminated, truncated, info


def by_epoch(frames: list[int], returns: list[float], epochs: int) -> pd.DataFrame:
    """Returns the mean return of the episodes that ended within each epoch.

    Its scores stand at the epoch's end, so they are of a policy that is half an epoch
    older on average than that of an evaluation there.
    """
    epoch = -(-np.array(frames) // FRAMES_PER_EPOCH)
    table = pd.DataFrame({"epoch": epoch, "score": returns}).query("epoch <= @epochs")
    found = table.groupby("epoch").score.agg(["mean", "count"]).reset_index()
    found.columns = ["epoch", "return_mean", "episodes"]
    found.insert(1, "frames", found.epoch * FRAMES_PER_EPOCH)
    return found


def main() -> None:
    """Trains, then writes a row for each epoch."""
    game, seed, epochs, out = sys.argv[1:]
    Recorded.steps, Recorded.returns = [], []
    steps = int(epochs) * FRAMES_PER_EPOCH
    with tempfile.TemporaryDirectory() as logs:
        own = [f"env.id={game}", f"seed={seed}", f"algo.total_steps={steps}"]
        own += [f"log_root={logs}", f"hydra.run.dir={logs}"]
        sys.argv = [*sys.argv[:1], *OVERRIDES, *own]
        run()
    rows = by_epoch(Recorded.steps, Recorded.returns, int(epochs))
    write_aside(Path(out), rows.to_csv(index=False))


if __name__ == "__main__":
    # sheeprl finds `Recorded` by its module's name: the one that is read here as well.
    from benchmarks import learning_sheeprl

    learning_sheeprl.main()
