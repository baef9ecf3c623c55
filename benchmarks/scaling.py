"""What more learners and more env runners bring on this machine.

- learners: updates per second of two learner processes that share each minibatch,
  against one, at the sizes of the tuned examples of MinAtar (desk) and of the paper;
- env runners: Atari frames per second of 2 and 4 runners that share the paper's four
  environments, against one, all with the learned policy of a model of size S.

    python -m benchmarks.scaling [--only learners|runners] [--scale desk] [--epochs 4]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import ray

from benchmarks.epoch import make_config
from rllib_arrow import ARROWConfig

ENVIRONMENTS = 4  # of the paper
SCALES = ("desk", "paper")


def with_learners(scale: str, count: int) -> ARROWConfig:
    """Learning alone matters: few frames, and a core for each learner."""
    config = make_config(scale, remote=True).learners(num_learners=count)
    config.env_runners(rollout_fragment_length=64 if scale == "desk" else 512)
    return config


def with_runners(count: int) -> ARROWConfig:
    """Collecting alone matters: one update an epoch."""
    config = make_config("paper", remote=False)
    config.training(world_model_updates=1, actor_critic_updates=1)
    return config.env_runners(
        num_env_runners=count, num_envs_per_env_runner=ENVIRONMENTS // count
    )


def best(config: ARROWConfig, key: Callable[[dict], float], epochs: int) -> float:
    """Returns the best rate of all epochs but the first two, which warm up."""
    algorithm = config.build_algo()
    rates = [key(algorithm.train()) for _ in range(epochs)]
    algorithm.stop()
    return max(rates[2:])


def report(name: str, counts: tuple[int, ...], rate: Callable, unit: str) -> None:
    """Prints how many times as fast as one each further count is."""
    rates = {count: rate(count) for count in counts}
    for count in counts[1:]:
        line = {
            "name": f"{name}_{count}",
            "ours": round(rates[count], 2),
            "peer": round(rates[1], 2),
            "peer_name": "one",
            "ratio": round(rates[count] / rates[1], 2),
            "unit": unit,
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("learners", "runners"))
    parser.add_argument("--scale", choices=SCALES, nargs="+", default=SCALES)
    parser.add_argument("--epochs", type=int, default=4, help="3 or more")
    args = parser.parse_args()
    # Logical CPUs: actors may outnumber the cores, which the figures then show.
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    if args.only != "runners":
        for scale in args.scale:

            def learn(count: int, scale: str = scale) -> float:
                config = with_learners(scale, count)
                return best(config, lambda r: r["updates_per_s"], args.epochs)

            report(f"scaling_learners_{scale}", (1, 2), learn, "updates/s")
    if args.only != "learners":

        def collect(count: int) -> float:
            config = with_runners(count)
            return best(
                config,
                lambda r: config.frames_per_epoch / r["collect_s"],
                args.epochs,
            )

        report("scaling_env_runners", (1, 2, 4), collect, "frames/s")


if __name__ == "__main__":
    main()
