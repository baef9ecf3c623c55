"""One update of sheeprl's DreamerV3 (size S, 64x64 images), served in turns.

Runs in an environment that has sheeprl and nothing of this project; started by
`benchmarks.learner` with the batch size, its length, the horizon and the threads.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import hydra
import sheeprl
import torch
from lightning.fabric import Fabric
from omegaconf import OmegaConf
from sheeprl.algos.dreamer_v3.agent import build_agent
from sheeprl.algos.dreamer_v3.dreamer_v3 import train
from sheeprl.algos.dreamer_v3.utils import Moments
from sheeprl.utils.metric import MetricAggregator
from sheeprl.utils.utils import dotdict

from benchmarks.turns import serve

ACTIONS, SIDE = 18, 64


def read_config(batch_size: int, length: int, horizon: int) -> dotdict:
    """Returns sheeprl's own settings of size S, at our batch and horizon."""
    folder = str(Path(sheeprl.__file__).parent / "configs")
    with hydra.initialize_config_dir(folder, version_base="1.3"):
        config = hydra.compose(
            "config",
            overrides=[
                "exp=dreamer_v3",
                "env=dummy",
                "env.id=discrete_dummy",
                "algo=dreamer_v3_S",
                f"algo.per_rank_batch_size={batch_size}",
                f"algo.per_rank_sequence_length={length}",
                f"algo.horizon={horizon}",
                "algo.cnn_keys.encoder=[rgb]",
                "algo.cnn_keys.decoder=[rgb]",
                "algo.mlp_keys.encoder=[]",
                "algo.mlp_keys.decoder=[]",
            ],
        )
    return dotdict(OmegaConf.to_container(config, resolve=True))


def random_rows(batch_size: int, length: int) -> dict[str, torch.Tensor]:
    """Returns a batch as sheeprl's buffer gives it: time first, floats."""
    shape = (length, batch_size)
    actions = torch.randint(ACTIONS, shape)
    return {
        "rgb": torch.randint(0, 256, (*shape, 3, SIDE, SIDE)).float(),
        "actions": torch.nn.functional.one_hot(actions, ACTIONS).float(),
        "rewards": torch.randn(*shape, 1),
        "is_first": (torch.rand(*shape, 1) < 0.02).float(),
        "terminated": (torch.rand(*shape, 1) < 0.02).float(),
        "truncated": torch.zeros(*shape, 1),
    }


def main() -> None:
    """Builds sheeprl's agent and optimisers as its own main does, and serves."""
    batch_size, length, horizon, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    config = read_config(batch_size, length, horizon)
    MetricAggregator.disabled = True
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    images = gym.spaces.Box(0, 255, (3, SIDE, SIDE))
    models = build_agent(
        fabric, (ACTIONS,), False, config, gym.spaces.Dict({"rgb": images})
    )[:4]
    optimizers = [
        hydra.utils.instantiate(
            settings.optimizer, params=model.parameters(), _convert_="all"
        )
        for settings, model in zip(
            (config.algo.world_model, config.algo.actor, config.algo.critic),
            models[:3],
            strict=True,
        )
    ]
    optimizers = fabric.setup_optimizers(*optimizers)
    settings = config.algo.actor.moments
    moments = Moments(
        settings.decay, settings.max, settings.percentile.low, settings.percentile.high
    )
    rows = random_rows(batch_size, length)

    def update() -> None:
        train(
            fabric,
            *models,
            *optimizers,
            {key: value.clone() for key, value in rows.items()},
            None,
            config,
            False,
            (ACTIONS,),
            moments,
        )

    serve(update, runs=1)


if __name__ == "__main__":
    main()
