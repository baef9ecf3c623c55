"""Seconds until the `rllib` command answers, and until a training run trains.

- help: `rllib --help`, against an empty Python;
- example_list: `rllib example list`, against an empty Python;
- train: `rllib train` of one tiny epoch, against starting and stopping Ray alone.

    python -m benchmarks.startup [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RLLIB = str(Path(sys.executable).with_name("rllib"))
NOTHING = [sys.executable, "-c", "pass"]
RAY = [
    sys.executable,
    "-c",
    "import ray; ray.init(include_dashboard=False, log_to_driver=False)",
]
TRAIN = [RLLIB, "train", "file", "dv3_smoke"]
TINY = {
    "curriculum.tasks": ["breakout"],
    "curriculum.epochs_per_task": 1,
    "world_model_updates": 1,
    "actor_critic_updates": 1,
    "evaluation_duration": 1,
}


def seconds(command: list[str]) -> float:
    """Returns how long a command takes."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def train() -> list[str]:
    """Returns the command of a run of one tiny epoch in a new place."""
    settings = [f"{key}={json.dumps(value)}" for key, value in TINY.items()]
    told = [word for text in settings for word in ("--set", text)]
    return [*TRAIN, *told, "--storage", tempfile.mkdtemp()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = range(parser.parse_args().repeats)
    for name, ours, peer, peer_name in (
        ("help", lambda: [RLLIB, "--help"], NOTHING, "an empty Python"),
        ("example_list", lambda: [RLLIB, "example", "list"], NOTHING, "empty Python"),
        ("train", train, RAY, "starting Ray alone"),
    ):
        times = [(seconds(ours()), seconds(peer)) for _ in repeats]
        mine, theirs = (min(side) for side in zip(*times, strict=True))
        line = {
            "name": f"startup_{name}",
            "ours": round(mine, 2),
            "peer": round(theirs, 2),
            "peer_name": peer_name,
            "ratio": round(mine / theirs, 2),
            "unit": "s",
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
