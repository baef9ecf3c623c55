"""Measures the score of a uniformly random policy on every task.

Each environment plays the same fixed number of whole episodes. Playing until some
number of episodes have ended anywhere would favour short ones, and low scores.

    python -m benchmarks.random_scores [SUITE ...]
"""

from __future__ import annotations

import json
import sys

import numpy as np

from rllib_arrow.envs.base import VectorTask
from rllib_arrow.envs.references import PAPER_SOURCES
from rllib_arrow.envs.suites import SUITES, make_task, reference_scores
from rllib_arrow.seeding import derive_rng

SEED = 1
ENVS = 16
EPISODES_PER_ENV = {
    "atari": 2,
    "coinrun": 64,
    "minatar": 64,
    "minatar_variants": 64,
    "minigrid": 32,
}


def random_returns(task: VectorTask, episodes_per_env: int, seed: int) -> np.ndarray:
    """Returns [num_envs, episodes_per_env]: the returns of whole episodes."""
    rng = derive_rng(seed, "actions")
    returns = np.zeros((task.num_envs, episodes_per_env))
    finished = np.zeros(task.num_envs, int)
    task.reset(seed)
    while (active := np.flatnonzero(finished < episodes_per_env)).size:
        rows = task.step(rng.integers(task.action_space.n, size=task.num_envs))
        returns[active, finished[active]] += rows.rewards[active]
        finished += rows.is_last
    return returns


def main(suites: list[str]) -> None:
    for suite in suites:
        references = reference_scores(suite)
        for name in SUITES[suite].tasks:
            task = make_task(suite, name, ENVS)
            returns = random_returns(task, EPISODES_PER_ENV[suite], SEED)
            task.close()
            ours, paper = float(returns.mean()), references[name].paper_random
            figure = {
                "name": f"random_score/{suite}/{name}",
                "ours": round(ours, 3),
                "peer": paper,
                "peer_name": PAPER_SOURCES.get(suite),
                "ratio": round(ours / paper, 3) if paper else None,
                "unit": "return",
                "std": round(float(returns.std(ddof=1)), 3),
                "episodes": returns.size,
            }
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SUITES))
