"""Does our DreamerV3 learn a game as well as sheeprl's, at equal everything?

Trains the peer on two MinAtar games with three of the paper's seeds, 12 epochs of 4,096
frames and 200 updates each, and holds its curves against the published single-task runs
of DV3 and ARROW (`make evidence`). A curve that is there already is not trained again.

    SHEEPRL_PYTHON=/path/to/python python -m benchmarks.learning [--jobs N]

SHEEPRL_PYTHON names an interpreter that has sheeprl 0.8.4 and this project. Without
it only the figure and the lines are made, from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

from benchmarks.evidence.runner import ROOT
from rllib_arrow.files import replacing

OUT = ROOT / "docs/results/learner"
SINGLE = ROOT / "docs/results/minatar/runs"
GAMES = {"space_invaders": "Space Invaders", "breakout": "Breakout"}
SEEDS = (123456789, 1337, 31337)
EPOCHS = 12
PEER = "sheeprl 0.8.4's DreamerV3"
OURS = {
    "DV3": "single-others/dv3",
    "ARROW": "single/arrow",
    "ARROW, compiled": "single-compiled/arrow",
}
COLOURS = dict(
    zip((*OURS, PEER), ("#c44e52", "#4c72b0", "#55a868", "#555555"), strict=True)
)


def train_peer(python: str, jobs: int) -> None:
    """Trains what is missing, each run on a thread of its own."""

    def train(run: tuple[str, int]) -> None:
        game, seed = run
        out = OUT / f"sheeprl_{game}_{seed}.csv"
        if not out.exists():
            words = map(str, (game, seed, EPOCHS, out))
            command = [python, "-m", "benchmarks.learning_sheeprl", *words]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run(
                command, check=True, cwd=ROOT, env=environment, capture_output=True
            )
            print(f"{out.name} finished", flush=True)

    OUT.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(train, product(GAMES, SEEDS)))


def read_curves(game: str) -> dict[str, pd.DataFrame]:
    """Returns scores by frames (rows) and seeds (columns) of each learner."""
    found = {}
    for learner, start in {**OURS, PEER: ""}.items():
        columns = {}
        for seed in SEEDS:
            path = OUT / f"sheeprl_{game}_{seed}.csv"
            if start:
                path = SINGLE / f"{start}_{game}_{seed}" / "evaluations.csv"
            if path.exists():
                rows = pd.read_csv(path)
                columns[seed] = rows.set_index("frames").return_mean
        if columns:
            found[learner] = pd.DataFrame(columns)
    return found


def draw(curves: dict[str, dict[str, pd.DataFrame]]) -> None:
    """Draws each learner's seeds thin and their mean thick, a panel for each game."""
    figure, panels = plt.subplots(1, len(curves), figsize=(9, 3.4), squeeze=False)
    for panel, (game, learners) in zip(panels[0], curves.items(), strict=True):
        for learner, scores in learners.items():
            colour = COLOURS[learner]
            panel.plot(scores.index, scores, color=colour, alpha=0.35, linewidth=1)
            panel.plot(scores.index, scores.mean(axis=1), color=colour, label=learner)
        panel.set_title(GAMES[game])
        panel.set_xlabel("frames")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("score of an episode")
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    with replacing(OUT / "curves.png") as file:
        figure.savefig(file, dpi=150)


def report(game: str, curves: dict[str, pd.DataFrame]) -> None:
    """Prints the scores at the end, of each learner of ours against the peer."""
    last = {learner: scores.iloc[-1].dropna() for learner, scores in curves.items()}
    peer = last.pop(PEER, None)
    for learner, ours in last.items():
        if peer is not None:
            figure = {
                "name": f"learning_{game}_{learner.lower().replace(', ', '_')}",
                "ours": round(ours.mean(), 2),
                "peer": round(peer.mean(), 2),
                "peer_name": PEER,
                "ratio": round(ours.mean() / peer.mean(), 2),
                "unit": f"score after {EPOCHS * 4096} frames, mean of seeds",
                "ours_by_seed": ours.round(2).tolist(),
                "peer_by_seed": peer.round(2).tolist(),
            }
            print(json.dumps(figure), flush=True)


def main() -> None:
    """Trains, draws and reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if python := os.environ.get("SHEEPRL_PYTHON"):
        train_peer(python, arguments.jobs)
    curves = {game: read_curves(game) for game in GAMES}
    draw(curves)
    for game, learners in curves.items():
        report(game, learners)


if __name__ == "__main__":
    main()
