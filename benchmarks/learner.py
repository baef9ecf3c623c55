"""Seconds per update of the DV3 learner, against other implementations.

An update is one world-model step and one actor-critic step on a minibatch of 16 x 32
rows, with dreams of 15 steps from all 512 states.

- size S, 64x64 images: RLlib's DreamerV3 learner with the same sizes;
- size S: sheeprl's DreamerV3, if SHEEPRL_PYTHON names an interpreter that has it;
- desk scale, 16x16 images: a straightforward version of the same networks;
- the floor: the update's matrix products and convolutions at the speed that one large
  matrix product reaches here.

Sides take turns, and each one's best time counts: other work on the machine only ever
adds to a time.

    python -m benchmarks.learner [--scale paper|desk] [--repeats 5] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.dreamerv3.dreamerv3 import DreamerV3Config
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.numpy import one_hot
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.learner_peer import PlainLearner
from rllib_arrow.algorithms.dv3.dv3 import DV3Config
from rllib_arrow.algorithms.dv3.learner import DV3Learner

B, T, H = 16, 32, 15
SIZES = {"paper": ("S", 64, 18), "desk": ("micro", 16, 6)}  # model, image, actions

Batch = dict[str, np.ndarray]
Update = Callable[[], None]


def random_batch(side: int, actions: int) -> Batch:
    """Returns a minibatch as replay gives it."""
    rng = np.random.default_rng(0)
    return {
        "obs": rng.integers(0, 256, (B, T, side, side, 3), dtype=np.uint8),
        "actions": rng.integers(0, actions, (B, T)),
        "rewards": rng.normal(size=(B, T)).astype(np.float32),
        "is_first": rng.random((B, T)) < 0.02,
        "is_terminated": rng.random((B, T)) < 0.02,
    }


def our_learner(model_size: str, side: int, actions: int) -> DV3Learner:
    """Builds this package's learner, one update to an epoch."""
    config = DV3Config().training(
        model_size=model_size,
        world_model_updates=1,
        actor_critic_updates=1,
        interleaved=True,
        batch_size_B=B,
        batch_length_T=T,
        horizon_H=H,
        dream_starts=0,
    )
    spec = config.get_default_rl_module_spec()
    spec.observation_space = gym.spaces.Box(0, 255, (side, side, 3), np.uint8)
    spec.action_space = gym.spaces.Discrete(actions)
    spec.model_config = {"model_size": model_size}
    learner = DV3Learner(config=config, module_spec=spec.as_multi_rl_module_spec())
    learner.build()
    return learner


def rllib_update(model_size: str, side: int, actions: int, batch: Batch) -> Update:
    """Returns one update of RLlib's DreamerV3 learner on the same rows."""
    config = DreamerV3Config().training(
        model_size=model_size, batch_size_B=B, batch_length_T=T, horizon_H=H
    )
    config.report_images_and_videos = False
    images = gym.spaces.Box(-1.0, 1.0, (side, side, 3), np.float32)
    spaces = {DEFAULT_MODULE_ID: (images, gym.spaces.Discrete(actions))}
    spec = config.get_multi_rl_module_spec(spaces=spaces)
    learner = config.get_default_learner_class()(config=config, module_spec=spec)
    learner.build()
    rows = {
        "obs": batch["obs"].astype(np.float32) / 127.5 - 1.0,
        "actions": one_hot(batch["actions"], depth=actions),
        "rewards": batch["rewards"],
        "is_first": batch["is_first"].astype(np.float32),
        "is_terminated": batch["is_terminated"],
    }
    rows = {key: torch.from_numpy(value) for key, value in rows.items()}

    def update() -> None:
        learner.update(batch=SampleBatch(rows).as_multi_agent())

    return update


def best_times(updates: dict[str, Update], repeats: int) -> dict[str, float]:
    """Returns each side's shortest time, after a first update that does not count."""
    best = dict.fromkeys(updates, float("inf"))
    for repeat in range(repeats + 1):
        for name, update in updates.items():
            started = time.perf_counter()
            update()
            if repeat > 0:
                best[name] = min(best[name], time.perf_counter() - started)
    return best


def gflop_per_update(update: Update) -> float:
    """Counts the matrix products and convolutions of one update."""
    with FlopCounterMode(display=False) as counter:
        update()
    return counter.get_total_flops() / 1e9


def matmul_gflops() -> float:
    """Returns the best speed of a large float32 matrix product here, in GFLOP/s."""
    side = 2048
    a, b = torch.rand(side, side), torch.rand(side, side)
    seconds = best_times({"matmul": lambda: torch.mm(a, b)}, repeats=10)["matmul"]
    return 2 * side**3 / seconds / 1e9


def sheeprl_seconds(repeats: int) -> float | None:
    """Returns sheeprl's best time, measured in its own environment, if there is one."""
    interpreter = os.environ.get("SHEEPRL_PYTHON")
    if not interpreter:
        return None
    script = Path(__file__).with_name("learner_sheeprl.py")
    sizes = [str(x) for x in (B, T, H, repeats, torch.get_num_threads())]
    done = subprocess.run(
        [interpreter, str(script), *sizes], capture_output=True, text=True
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RuntimeError(f"SHEEPRL_PYTHON ({interpreter}) failed: {last}")
    return float(done.stdout.strip().splitlines()[-1])


def report(name: str, ours: float, peer: float, peer_name: str) -> None:
    """Prints one figure; the ratio is how many times as fast as the peer we are."""
    figure = {
        "name": name,
        "ours": round(ours, 4),
        "peer": round(peer, 4),
        "peer_name": peer_name,
        "ratio": round(peer / ours, 2),
        "unit": "s/update",
    }
    print(json.dumps(figure), flush=True)


def compare(scale: str, repeats: int) -> None:
    """Measures all sides at one scale and prints a line for each."""
    model_size, side, actions = SIZES[scale]
    batch = random_batch(side, actions)
    learner = our_learner(model_size, side, actions)
    # A seed makes RLlib switch torch to deterministic algorithms; for no side here.
    torch.use_deterministic_algorithms(False)

    def ours() -> None:
        learner.learn_epoch(0, iter([batch]))

    if scale == "paper":
        peer_name = "RLlib 2.60 DreamerV3"
        peer = rllib_update(model_size, side, actions, batch)
    else:
        peer_name = "torch.distributions in the loop"
        peer = PlainLearner(learner.net, learner.config, batch).update
    best = best_times({"ours": ours, "peer": peer}, repeats)
    report(f"learner_update_{scale}", best["ours"], best["peer"], peer_name)
    sheeprl = sheeprl_seconds(repeats) if scale == "paper" else None
    if sheeprl is not None:
        again = best_times({"ours": ours}, repeats)["ours"]
        fastest = min(best["ours"], again)
        report(f"learner_update_{scale}", fastest, sheeprl, "sheeprl DreamerV3")
    gflop, speed = gflop_per_update(ours), matmul_gflops()
    floor = f"floor: {gflop:.1f} GFLOP at {speed:.0f} GFLOP/s of matrix product"
    report(f"learner_floor_{scale}", best["ours"], gflop / speed, floor)


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=sorted(SIZES), help="one scale; else both")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="torch threads; else torch's own")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    for scale in [arguments.scale] if arguments.scale else SIZES:
        compare(scale, arguments.repeats)


if __name__ == "__main__":
    main()
