"""Where the time of an epoch goes: all but stepping and gradients should be little.

Runs a few epochs of ARROW with a remote learner, as on a cluster, and adds up what the
driver, the replay actor and the transport of weights and batches cost.
"""

from __future__ import annotations

import argparse
import json
import time

import ray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import LEARNER_RESULTS

from rllib_arrow import ARROWConfig


def make_config(scale: str, remote: bool) -> ARROWConfig:
    config = ARROWConfig()
    if scale == "desk":
        config.continual(
            curriculum={"suite": "minatar", "epochs_per_task": 2},
            replay_capacity_chunks=128,
            replay_chunk_length=64,
        )
        config.training(
            model_size="micro",
            interleaved=True,
            world_model_updates=200,
            actor_critic_updates=200,
            batch_size_B=8,
            batch_length_T=16,
            dream_starts=64,
            horizon_H=12,
        )
        config.env_runners(num_envs_per_env_runner=16, rollout_fragment_length=256)
    else:
        config.continual(curriculum={"suite": "atari", "epochs_per_task": 2})
        # An eighth of the paper's frames and an eightieth of its updates: what has to
        # do with frames weighs ten times as much as in the paper's epoch.
        config.training(world_model_updates=12, actor_critic_updates=10)
        config.env_runners(rollout_fragment_length=512)
    if remote:
        config.learners(num_learners=1)
    config.evaluation(evaluation_interval=None)
    return config


def measure(config: ARROWConfig, epochs: int) -> dict[str, float]:
    """Returns seconds by kind of work, over all epochs but the first two.

    Epoch 0 acts at random, and in epoch 1 processes still warm up.
    """
    algorithm = config.build_algo()
    total = {"wall": 0.0, "stepping": 0.0, "gradients": 0.0, "store": 0.0, "wait": 0.0}
    for epoch in range(epochs):
        began = time.perf_counter()
        result = algorithm.train()
        wall = time.perf_counter() - began
        if epoch < 2:
            continue
        learned = result[LEARNER_RESULTS][DEFAULT_MODULE_ID]
        total["wall"] += wall
        total["stepping"] += result["collect_s"]
        total["gradients"] += learned["learn_s"] - learned["replay_wait_s"]
        total["store"] += result["store_s"]
        total["wait"] += learned["replay_wait_s"]
    algorithm.stop()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("desk", "paper"), default="desk")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--local", action="store_true", help="learn in the driver")
    args = parser.parse_args()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    spent = measure(make_config(args.scale, not args.local), args.epochs)
    outside = spent["wall"] - spent["stepping"] - spent["gradients"]
    for name, seconds in {**spent, "outside": outside}.items():
        line = {
            "name": f"epoch_{args.scale}_{name}",
            "ours": round(seconds, 3),
            "peer": round(spent["wall"], 3),
            "peer_name": "whole epochs",
            "ratio": round(seconds / spent["wall"], 4),
            "unit": "s",
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
