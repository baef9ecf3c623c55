"""What the methods of docs/beyond.md add to ARROW's processor seconds of learning.

An epoch of so many update pairs at desk scale (size micro, 8 x 16 rows, 64 dreams of 12
steps), with a method and without. Sides take turns, each in a process of its own, and
each one's best time counts.

    python -m benchmarks.beyond [--repeats 5] [--pairs 32] [--compiled] [METHOD ...]
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import numpy as np
import torch

from benchmarks.learner_sides import SCALES, our_config, our_spec, random_batch
from benchmarks.turns import Side, best_of_turns, serve
from rllib_arrow.algorithms.dv3.learner import DV3Learner

METHODS = {
    "arrow": {},
    "rehearsal": {"rehearsal_interval": 4},
    "rehearsal_often": {"rehearsal_interval": 2},
    "cloning": {"cloning": True},
    "spread": {"advantage_scale": "state"},
    "ewc": {"ewc_scale": 0.01},
    "l2_init": {"l2_init_scale": 0.1},
}


def serve_side(method: str, pairs: int, use_compile: bool) -> None:
    """Learns epochs with the method named, whenever it is asked to."""
    torch.set_num_threads(1)
    scale = SCALES["desk"]
    updates = {"world_model_updates": pairs, "actor_critic_updates": pairs}
    config = our_config(scale).training(
        use_compile=use_compile, **updates, **METHODS[method]
    )
    spec = our_spec(scale)
    spec.model_config["learns_spread"] = config.advantage_scale == "state"
    multi = spec.as_multi_rl_module_spec()
    learner = DV3Learner(config=config, module_spec=multi)
    learner.build()
    batch = random_batch(scale)
    rows = (scale.batch_size, scale.length, scale.actions + 1)
    batch["policy"] = np.full(rows, 1 / scale.actions, np.float16)

    def learn() -> None:
        learner.learn_epoch(
            0, itertools.repeat(batch), rehearsed=itertools.repeat(batch)
        )

    serve(learn, 1, time.process_time)


def main() -> None:
    """Compares the methods named with plain ARROW."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", metavar="METHOD")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=32)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--serve", metavar="METHOD", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve_side(asked.serve, asked.pairs, asked.compiled)
        return
    options = ["--pairs", asked.pairs, *(["--compiled"] if asked.compiled else [])]
    names = ["arrow", *(asked.methods or [m for m in METHODS if m != "arrow"])]
    sides = {
        name: Side("benchmarks.beyond", "--serve", name, *options) for name in names
    }
    best = best_of_turns(sides, asked.repeats)
    for side in sides.values():
        side.close()
    milliseconds = {name: 1000 * s / asked.pairs for name, s in best.items()}
    arrow = milliseconds.pop("arrow")
    for name, ours in milliseconds.items():
        line = {
            "name": f"beyond_{name}",
            "ours": round(ours, 2),
            "peer": round(arrow, 2),
            "peer_name": "ARROW",
            "ratio": round(ours / arrow, 3),
            "unit": "ms of processor time a pair of updates",
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
