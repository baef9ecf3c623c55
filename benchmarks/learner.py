"""Seconds per update of the DV3 learner, against other implementations.

An update is one world-model step and one actor-critic step on a minibatch.

- paper_512_dreams: size S, 64x64 images, 16 x 32 rows, dreams of 15 steps from all
  512 states; against RLlib's DreamerV3, sheeprl's if SHEEPRL_PYTHON names an
  interpreter that has it, and NM512's r2dreamer in its DreamerV3 mode if
  R2DREAMER_PATH names its checkout and R2DREAMER_PYTHON an interpreter for it;
- paper: the same with the paper's 128 dreams;
- desk: size micro, 16x16 images, 8 x 16 rows, 64 dreams of 12 steps (the tuned
  examples of MinAtar), and desk_large: 16 x 32 rows, 128 dreams of 15 steps; against a
  straightforward version of the same networks.

All scales are compared with our own eager path, with mixed precision, with the floor
(the update's matrix products and convolutions at the speed that one large matrix
product reaches here), and by the operations of an update, which on a GPU would be
launches.

Sides take turns, each in a process of its own, and each one's best time counts: other
work on the machine only ever adds to a time.

    python -m benchmarks.learner [--scale desk ...] [--repeats 10] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.metadata import version

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.learner_sides import SCALES, UPDATES, Scale, our_update
from benchmarks.turns import Side, best_of_turns, chosen_clock
from rllib_arrow.algorithms.dv3.products import BY_MKL, BY_ONEDNN, multiplied_by

SIDES = "benchmarks.learner_sides"
PLAIN = "torch.distributions in the loop"
EAGER = "our eager path"
OURS = {EAGER: "eager", "compiled with mixed_precision": "mixed"}


def gflop_per_update(scale: Scale) -> float:
    """Counts the matrix products and convolutions of one update."""
    update = our_update(scale)
    with FlopCounterMode(display=False) as counter:
        update()
    return counter.get_total_flops() / 1e9


class Operations(TorchDispatchMode):
    """Counts operations that compute: views of a tensor are none."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def operations_per_update(name: str, scale: Scale) -> int:
    """Counts the operations of one update of a side, after a first one."""
    update = UPDATES[name](scale)
    update()
    with Operations() as operations:
        update()
    return operations.count


def matmul_gflops(rounds: int = 10) -> float:
    """Returns the best speed of a large float32 matrix product here, in GFLOP/s."""
    side, best, clock = 2048, float("inf"), chosen_clock()
    a, b = torch.rand(side, side), torch.rand(side, side)
    for library in (BY_MKL, BY_ONEDNN):
        with multiplied_by(library):
            for _ in range(rounds):
                started = clock()
                torch.mm(a, b)
                best = min(best, clock() - started)
    return 2 * side**3 / best / 1e9


def report(
    name: str, ours: float, peer: float, peer_name: str, unit: str = "s/update"
) -> None:
    """Prints one figure; the ratio is how many times as fast as the peer we are."""
    figure = {
        "name": name,
        "ours": round(ours, 4),
        "peer": round(peer, 4),
        "peer_name": peer_name,
        "ratio": round(peer / ours, 2),
        "unit": unit,
    }
    print(json.dumps(figure), flush=True)


def start_peers(name: str, threads: int) -> dict[str, Side]:
    """Starts the peers of a scale, by the names to report."""
    scale = SCALES[name]
    ours = OURS if scale.starts else {EAGER: "eager"}
    peers = {side: Side(SIDES, key, name, threads) for side, key in ours.items()}
    if scale.model_size == "micro":
        return peers | {PLAIN: Side(SIDES, "plain", name, threads)}
    if scale.starts:
        return peers
    rllib = f"RLlib {version('ray')} DreamerV3"
    peers[rllib] = Side(SIDES, "rllib", name, threads)
    sizes = (scale.batch_size, scale.length, scale.horizon, threads)
    if python := os.environ.get("SHEEPRL_PYTHON"):
        peers["sheeprl DreamerV3"] = Side(
            "benchmarks.learner_sheeprl", *sizes, python=python
        )
    if python := os.environ.get("R2DREAMER_PYTHON"):
        peers["r2dreamer in DreamerV3 mode"] = Side(
            "benchmarks.learner_r2dreamer", *sizes, python=python
        )
    return peers


def compare(name: str, repeats: int, threads: int) -> None:
    """Measures all sides at one scale and prints a line for each peer."""
    sides = {"ours": Side(SIDES, "compiled", name, threads)}
    sides |= start_peers(name, threads)
    best = best_of_turns(sides, repeats)
    speed = matmul_gflops()
    for side in sides.values():
        side.close()
    ours = best.pop("ours")
    for peer, seconds in best.items():
        report(f"learner_update_{name}", ours, seconds, peer)
    gflop = gflop_per_update(SCALES[name])
    floor = f"floor: {gflop:.1f} GFLOP at {speed:.0f} GFLOP/s of matrix product"
    report(f"learner_floor_{name}", ours, gflop / speed, floor)


def count_operations(name: str) -> None:
    """Prints how many operations our eager update takes, and a peer's."""
    scale = SCALES[name]
    peers = {"plain": PLAIN} if scale.starts else {"rllib": "RLlib's DreamerV3"}
    ours = operations_per_update("eager", scale)
    for side, peer in peers.items():
        theirs = operations_per_update(side, scale)
        report(f"learner_operations_{name}", ours, theirs, peer, "operations/update")


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=list(SCALES), nargs="+", default=[*SCALES])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.scale:
        compare(name, arguments.repeats, arguments.threads)
        count_operations(name)


if __name__ == "__main__":
    main()
