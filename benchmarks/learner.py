"""Seconds per update of the DV3 learner, against other implementations.

An update is one world-model step and one actor-critic step on a minibatch of 16 x 32
rows, with dreams of 15 steps.

- paper: size S, 64x64 images, dreams from all 512 states; against RLlib's DreamerV3
  and, if SHEEPRL_PYTHON names an interpreter that has sheeprl, against sheeprl's;
- desk: size micro, 16x16 images, dreams from 128 states (the setting of the desk-scale
  experiments) and from all; against a straightforward version of the same networks;
- the floor: the update's matrix products and convolutions at the speed that one large
  matrix product reaches here.

Sides take turns, each in a process of its own, and each one's best time counts: other
work on the machine only ever adds to a time.

    python -m benchmarks.learner [--scale paper|desk] [--repeats 10] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from importlib.metadata import version

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.learner_sides import SCALES, B, H, T, our_update
from benchmarks.turns import Side, best_of_turns

DESK_STARTS = 128


def gflop_per_update(scale: str, starts: int) -> float:
    """Counts the matrix products and convolutions of one update."""
    update = our_update(SCALES[scale], starts)
    with FlopCounterMode(display=False) as counter:
        update()
    return counter.get_total_flops() / 1e9


def matmul_gflops(rounds: int = 20) -> float:
    """Returns the best speed of a large float32 matrix product here, in GFLOP/s."""
    side, best = 2048, float("inf")
    a, b = torch.rand(side, side), torch.rand(side, side)
    for _ in range(rounds):
        started = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - started)
    return 2 * side**3 / best / 1e9


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


def start_peers(scale: str, starts: int, threads: int) -> dict[str, Side]:
    """Starts the peers of a scale, by the names to report."""
    if scale == "desk":
        arguments = ("plain", scale, starts, threads)
        name = "torch.distributions in the loop"
        return {name: Side("benchmarks.learner_sides", *arguments)}
    arguments = ("rllib", scale, starts, threads)
    name = f"RLlib {version('ray')} DreamerV3"
    peers = {name: Side("benchmarks.learner_sides", *arguments)}
    python = os.environ.get("SHEEPRL_PYTHON")
    if python:
        side = Side("benchmarks.learner_sheeprl", B, T, H, threads, python=python)
        peers["sheeprl DreamerV3"] = side
    return peers


def compare(scale: str, starts: int, repeats: int, threads: int) -> None:
    """Measures all sides at one scale and prints a line for each peer."""
    arguments = ("ours", scale, starts, threads)
    sides = {"ours": Side("benchmarks.learner_sides", *arguments)}
    sides |= start_peers(scale, starts, threads)
    best = best_of_turns(sides, repeats)
    speed = matmul_gflops()
    for side in sides.values():
        side.close()
    ours = best.pop("ours")
    suffix = f"{scale}_{starts or B * T}_dreams"
    for name, seconds in best.items():
        report(f"learner_update_{suffix}", ours, seconds, name)
    gflop = gflop_per_update(scale, starts)
    floor = f"floor: {gflop:.1f} GFLOP at {speed:.0f} GFLOP/s of matrix product"
    report(f"learner_floor_{suffix}", ours, gflop / speed, floor)


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=sorted(SCALES), help="one scale; else both")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for scale, starts in (("paper", 0), ("desk", DESK_STARTS), ("desk", 0)):
        if arguments.scale in (None, scale):
            compare(scale, starts, arguments.repeats, arguments.threads)


if __name__ == "__main__":
    main()
